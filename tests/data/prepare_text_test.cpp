#include "plumb/data/prepare_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/data/batches.h"
#include "plumb/data/directory.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::TemporaryDirectory;

class PrepareText : public testing::Test {
 protected:
  PrepareText() {
    options_.tokenizer.vocabulary = 40;
    for (int i = 0; i < 60; ++i) corpora_.train.push_back("the dog sees cat number " + std::to_string(i % 7));
    corpora_.train.insert(corpora_.train.begin() + 3, " \t");  // no text
    corpora_.valid = {"the cat sees the dog", "", "a dog"};
  }

  DataDirectory prepare() {
    prepare_text_lines(corpora_, options_, directory_ / "data");
    return DataDirectory::open(directory_ / "data");
  }

  TemporaryDirectory directory_;
  TextOptions options_;
  TextCorpora corpora_;
};

TEST_F(PrepareText, BlocksAreTheTextWithAnEndAfterEachLine) {
  options_.block = 7;
  const DataDirectory data = prepare();
  const Split& split = data.split("valid");
  EXPECT_TRUE(split.running_text());
  std::vector<int32_t> joined;
  for (int64_t i = 0; i < split.size(); ++i) {
    EXPECT_TRUE(split.source(i).empty());
    if (i + 1 < split.size()) {
      EXPECT_EQ(split.target(i).size(), 7U);
    }
    joined.insert(joined.end(), split.target(i).begin(), split.target(i).end());
  }
  std::vector<int32_t> expected;
  for (const char* line : {"the cat sees the dog", "a dog"}) {
    const auto ids = data.target_tokenizer().encode(line);
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(data.target_tokenizer().specials().eos);
  }
  EXPECT_EQ(joined, expected);
  EXPECT_EQ(data.info()["splits"]["valid"]["words"], 9);
}

TEST_F(PrepareText, LinesAreSequencesWithoutBlocks) {
  options_.block = 0;
  options_.length_limit = 40;
  corpora_.train.emplace_back(std::string(60, 'd') + " is left out");
  const DataDirectory data = prepare();
  EXPECT_FALSE(data.split("valid").running_text());
  EXPECT_EQ(data.split("train").size(), 60);
  EXPECT_EQ(data.info()["dropped"]["over_length_limit"], 1);
  EXPECT_EQ(data.raw_target("valid"), (std::vector<std::string>{"the cat sees the dog", "a dog"}));
}

TEST_F(PrepareText, HoldsTheLastLinesOutWithoutValidation) {
  corpora_.valid.reset();
  options_.block = 0;
  options_.valid_size = 2;
  const DataDirectory data = prepare();
  EXPECT_EQ(data.raw_target("valid"), std::vector<std::string>(corpora_.train.end() - 2, corpora_.train.end()));
  EXPECT_EQ(data.split("train").size(), 58);
  EXPECT_TRUE(data.info()["held_out"]);
}

TEST_F(PrepareText, ReadsFilesAndRefusesWhatMakesNone) {
  write_file_atomic(directory_ / "train.txt", "one two\nthree four\nfive six\n");
  write_file_atomic(directory_ / "blank.txt", " \n\n");
  options_.train = directory_ / "train.txt";
  const Json info = prepare_text(options_, directory_ / "from files");
  EXPECT_EQ(info["inputs"]["train"][0]["bytes"], 28);
  options_.train = directory_ / "blank.txt";
  EXPECT_THROW(prepare_text(options_, directory_ / "nothing"), Error);
  options_.train = directory_ / "train.txt";
  options_.block = 1;
  EXPECT_THROW(prepare_text(options_, directory_ / "nothing"), Error);
  options_.block = 4;
  options_.valid_size = 3;
  EXPECT_THROW(prepare_text(options_, directory_ / "nothing"), Error);
  options_.valid_size = 0;
  options_.valid = directory_ / "blank.txt";
  EXPECT_THROW(prepare_text(options_, directory_ / "nothing"), Error);
  options_.valid.reset();
  write_file_atomic(directory_ / "spaces.txt", "\u3000\n\u3000\u3000\n\u3000\n");  // nothing after normalization
  options_.train = directory_ / "spaces.txt";
  const auto refused = [&] { return test::message_of([&] { prepare_text(options_, directory_ / "nothing"); }); };
  const std::string spaces = (directory_ / "spaces.txt").string();
  EXPECT_EQ(refused(), spaces + ": contains no text");
  options_.train = directory_ / "train.txt";
  options_.valid = spaces;
  EXPECT_EQ(refused(), spaces + ": contains no text");
  options_.valid.reset();
  options_.tests = {{"mine", spaces}};
  EXPECT_EQ(refused(), spaces + ": contains no text");
  options_.tests.clear();
  write_file_atomic(directory_ / "one.txt", "one two three\n");
  options_.train = directory_ / "one.txt";
  EXPECT_EQ(refused(), "1 line cannot be held out of 1");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "nothing"));
}

TEST_F(PrepareText, APipeIsReadOnce) {
  const std::string text = "one two\nthree four\nfive six\n";
  write_file_atomic(directory_ / "train.txt", text);
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(directory_ / "pipe") << text; });
  options_.train = directory_ / "pipe";
  const Json piped = prepare_text(options_, directory_ / "piped");
  writer.join();
  options_.train = directory_ / "train.txt";
  EXPECT_EQ(piped["splits"], prepare_text(options_, directory_ / "filed")["splits"]);
  EXPECT_EQ(piped["inputs"]["train"], (Json{{{"file", (directory_ / "pipe").string()}}}));
}

}  // namespace
}  // namespace plumb
