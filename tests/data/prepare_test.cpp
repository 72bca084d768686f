#include "plumb/data/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plumb/base/checksum.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/data/directory.h"
#include "plumb/data/prepare_synthetic.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

class Prepare : public testing::Test {
 protected:
  Prepare() {
    options_.train = {file("train.de", lines("Ein Hund mit", 200)), file("train.en", lines("A dog with", 200))};
    options_.tokenizer.vocabulary = 60;
  }

  static std::string lines(const std::string& words, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += words + " " + std::to_string(i) + ".\n";
    return text;
  }
  fs::path file(const std::string& name, const std::string& content) {
    write_file_atomic(directory_ / name, content);
    return directory_ / name;
  }
  // After a failure, there is nothing new beside the inputs.
  void expect_nothing_new() const {
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      EXPECT_FALSE(entry.is_directory()) << entry.path();
      EXPECT_LACKS(entry.path().string(), ".tmp") << entry.path();
    }
  }
  std::string failure() {
    return test::message_of([&] { prepare_data(options_, directory_ / "out"); });
  }

  TemporaryDirectory directory_;
  PrepareOptions options_;
};

TEST_F(Prepare, HeldOutValidation) {
  const Json info = prepare_data(options_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  EXPECT_EQ(data.info(), info);
  EXPECT_EQ(data.split_names(), (std::vector<std::string>{"train", "valid"}));
  EXPECT_EQ(data.split("train").size(), 190);  // 5% of 200 are held out
  EXPECT_EQ(data.split("valid").size(), 10);
  EXPECT_TRUE(data.joint());
  EXPECT_EQ(data.source_vocabulary(), data.target_vocabulary());
  EXPECT_LE(data.source_vocabulary(), 60);

  const auto trained = data.raw_target("train");
  const std::set<std::string> known(trained.begin(), trained.end());
  for (const std::string& target : data.raw_target("valid")) EXPECT_EQ(known.count(target), 0U);
}

TEST_F(Prepare, TokensStandBesideTheirText) {
  options_.tests.emplace_back("a",
                              CorpusFiles{file("a.de", "Hund 7.\n\nEin 3.\n"), file("a.en", "dog 7.\nA.\nwith 3.\n")});
  prepare_data(options_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  for (const std::string& name : data.split_names()) {
    const auto sources = data.raw_source(name);
    const auto targets = data.raw_target(name);
    ASSERT_EQ(std::ssize(sources), data.split(name).size());
    for (int64_t i = 0; i < data.split(name).size(); ++i) {
      EXPECT_EQ(data.source_tokenizer().decode(data.split(name).source(i)), sources[static_cast<size_t>(i)]);
      EXPECT_EQ(data.target_tokenizer().decode(data.split(name).target(i)), targets[static_cast<size_t>(i)]);
    }
  }
  EXPECT_EQ(data.raw_source("a"), (std::vector<std::string>{"Hund 7.", "", "Ein 3."}));  // a test set keeps every line
}

TEST_F(Prepare, TokenizerSeesTheTrainingTextAlone) {
  options_.valid = {file("v.de", "Ωmega Ψ\n"), file("v.en", "Ω\n")};
  options_.tests.emplace_back("t", CorpusFiles{file("t.de", "Ж\n"), file("t.en", "Я\n")});
  const Json info = prepare_data(options_, directory_ / "out");
  EXPECT_EQ(info["splits"]["train"]["source"]["unknown"], 0);
  EXPECT_GT(info["splits"]["valid"]["source"]["unknown"], 0);
  EXPECT_GT(info["splits"]["t"]["target"]["unknown"], 0);
  EXPECT_EQ(info["held_out"], false);
  const Tokenizer with = Tokenizer::from_file(directory_ / "out" / "tokenizer.model");
  options_.tests.clear();
  prepare_data(options_, directory_ / "without");
  with.save(directory_ / "a");
  EXPECT_EQ(read_file(directory_ / "a"), read_file(directory_ / "without" / "tokenizer.model"));
}

TEST_F(Prepare, SeparateVocabularies) {
  options_.joint = false;
  options_.tokenizer.vocabulary = 40;
  prepare_data(options_, directory_ / "out");
  const DataDirectory data = DataDirectory::open(directory_ / "out");
  EXPECT_FALSE(data.joint());
  const auto ids = data.source_tokenizer().encode("dog");  // "g" occurs only in the target language
  EXPECT_NE(std::count(ids.begin(), ids.end(), 3), 0);
  const auto known = data.target_tokenizer().encode("dog");
  EXPECT_EQ(std::count(known.begin(), known.end(), 3), 0);
}

TEST_F(Prepare, DroppedPairsAreCountedByReason) {
  std::string long_line;
  for (int i = 0; i < 50; ++i) long_line += "7 Hund ";
  options_.train = {file("d", lines("Ein Hund mit", 100) + "\nallein\n" + long_line + "\n"),
                    file("e", lines("A dog with", 100) + "no source\n\nlong\n")};
  options_.valid = {file("v.de", long_line + "\n"), file("v.en", "long\n")};
  options_.length_limit = 40;
  const Json info = prepare_data(options_, directory_ / "out");
  EXPECT_EQ(info["dropped"]["empty"], 2);
  EXPECT_EQ(info["dropped"]["over_length_limit"], 1);
  EXPECT_EQ(info["splits"]["train"]["pairs"], 100);
  EXPECT_LE(info["splits"]["train"]["source"]["longest"], 40);
  EXPECT_EQ(info["splits"]["valid"]["pairs"], 1);  // the limit applies only to training
  EXPECT_GT(info["splits"]["valid"]["source"]["longest"], 40);
}

TEST_F(Prepare, InputsAreNoted) {
  const Json info = prepare_data(options_, directory_ / "out");
  EXPECT_EQ(info["inputs"]["train"][0]["sha256"], sha256(read_file(options_.train.source)));
  EXPECT_EQ(info["inputs"]["train"][1]["bytes"], fs::file_size(options_.train.target));
}

TEST_F(Prepare, RepeatsItself) {
  prepare_data(options_, directory_ / "a");
  prepare_data(options_, directory_ / "b");
  for (const char* name :
       {"splits/train.tokens", "splits/valid.tokens", "splits/valid.source", "tokenizer.model", "data.json"}) {
    EXPECT_EQ(read_file(directory_ / "a" / name), read_file(directory_ / "b" / name)) << name;
  }
}

TEST_F(Prepare, NamesOfSplitsAreNoPaths) {
  prepare_data(options_, directory_ / "out");
  const fs::path file = directory_ / "out" / "data.json";
  for (const char* name : {"", "../train", "/train"}) {
    Json info = read_json(file);
    const Json train = info["splits"]["train"];
    info["splits"][name] = train;
    const std::string before = read_file(file);
    write_file_atomic(file, info.dump());
    EXPECT_EQ(test::message_of([&] { DataDirectory::open(directory_ / "out"); }),
              file.string() + ": '" + name + "' names no split");
    write_file_atomic(file, before);
  }
}

TEST_F(Prepare, FailuresLeaveNothing) {
  const auto good = options_;
  options_.length_limit = 1;
  EXPECT_EQ(failure(), "every training pair has more than 1 tokens on a side");
  options_.length_limit = 0;
  EXPECT_EQ(failure(), "the length limit must be at least 1, not 0");
  options_ = good;
  options_.valid_size = 200;
  EXPECT_EQ(failure(), "200 pairs cannot be held out of 200");
  options_ = good;
  options_.tokenizer.vocabulary = 6;
  EXPECT_CONTAINS(failure(), "a vocabulary of 6 is too small");
  options_ = good;
  options_.tests = {{"train", options_.train}};
  EXPECT_EQ(failure(), "the name 'train' is not free for a test set");
  options_.tests = {{"x", options_.train}, {"x", options_.train}};
  EXPECT_EQ(failure(), "two test sets are named 'x'");
  options_.tests = {{"../x", options_.train}};
  EXPECT_EQ(failure(), "'../x' is not a valid name for a test set");
  options_ = good;
  options_.train = {file("d", "a\n\n"), file("e", "\nb\n")};
  const auto path = [&](const char* name) { return (directory_ / name).string(); };
  EXPECT_EQ(failure(), path("d") + ", " + path("e") + ": contains no pair with text on both sides");
  options_.train = {file("d", "a\nb\nc\nd\n"), file("e", "x\nx\nx\nx\n")};
  EXPECT_EQ(failure(), "no validation pairs can be held out: every target sentence occurs in more than 1 pairs");
  expect_nothing_new();
}

// U+3000 is a space, and U+200B has no width; a line of the TSV file ends with a tab.
TEST_F(Prepare, TextThatGivesNoTokensIsNamed) {
  const PrepareOptions good = options_;
  const fs::path spaces = file("spaces", "\u3000\n\u3000\u3000\n"), marks = file("marks", "\u200B\n\u200B\n");
  options_.train = {spaces, marks};
  EXPECT_EQ(failure(), spaces.string() + ": contains no sentences");
  options_ = good;
  options_.valid = CorpusFiles{marks, spaces};
  EXPECT_EQ(failure(), marks.string() + ": contains no sentences");
  const fs::path half = file("half.tsv", "a dog\t\na cat\t\u3000\n");
  options_.valid = CorpusFiles{half, {}};
  EXPECT_EQ(failure(), half.string() + ": contains no pair that yields tokens on both sides");
  options_ = good;
  options_.tests = {{"mine", {half, {}}}};
  EXPECT_EQ(failure(), half.string() + ": contains no pair that yields tokens on both sides");
  expect_nothing_new();
}

TEST_F(Prepare, ReplacesItsOwnDirectoryOnlyAtTheEnd) {
  const fs::path out = directory_ / "out";
  prepare_data(options_, out);
  const std::string before = read_file(out / "data.json");
  options_.length_limit = 1;
  EXPECT_NE(failure(), "accepted");
  EXPECT_EQ(read_file(out / "data.json"), before);
  options_.length_limit = 100;
  prepare_data(options_, out / "");  // with a trailing slash
  EXPECT_EQ(DataDirectory::open(out).info()["length_limit"], 100);
  for (const auto& entry : fs::directory_iterator(directory_.path())) {
    EXPECT_LACKS(entry.path().string(), ".tmp");
    EXPECT_LACKS(entry.path().string(), ".old");
  }
}

TEST_F(Prepare, TouchesNothingOfOthers) {
  fs::create_directory(directory_ / "out");
  file("out/thesis.tex", "important");
  EXPECT_CONTAINS(failure(), "was not created by Plumb");
  EXPECT_EQ(read_file(directory_ / "out" / "thesis.tex"), "important");
  fs::remove_all(directory_ / "out");
  file("out", "a file");
  EXPECT_CONTAINS(failure(), "is a file");
  EXPECT_EQ(read_file(directory_ / "out"), "a file");
}

TEST_F(Prepare, AnEmptyDirectoryIsFree) {
  fs::create_directory(directory_ / "out");
  EXPECT_EQ(failure(), "accepted");
  EXPECT_EQ(DataDirectory::open(directory_ / "out").split("valid").size(), 10);
}

TEST_F(Prepare, DamagedDirectoriesAreNoticed) {
  const fs::path out = directory_ / "out";
  const auto message = [&]() -> std::string {
    return test::message_of([&] { (void)DataDirectory::open(out).raw_source("valid"); });
  };
  const auto renewed = [&] { prepare_data(options_, out); };
  EXPECT_CONTAINS(message(), "no such directory");
  renewed();
  EXPECT_EQ(message(), "accepted");
  fs::remove(out / "splits" / "train.tokens");
  EXPECT_CONTAINS(message(), "train.tokens: cannot be read");
  renewed();
  fs::copy_file(out / "splits" / "valid.tokens", out / "splits" / "train.tokens", fs::copy_options::overwrite_existing);
  EXPECT_CONTAINS(message(), "10 pairs, but data.json says 190");
  renewed();
  write_file_atomic(out / "splits" / "valid.source", "one line\n");
  EXPECT_CONTAINS(message(), "1 lines, but 10 pairs");
  renewed();
  write_file_atomic(out / "data.json", R"({"schema": "plumb.data/1"})");
  EXPECT_CONTAINS(message(), "malformed");
  write_file_atomic(out / "data.json", R"({"schema": "plumb.data/99"})");
  EXPECT_CONTAINS(message(), "schema \"plumb.data/99\"");
  renewed();
  write_file_atomic(out / "tokenizer.model", "no model");
  EXPECT_CONTAINS(message(), "not a SentencePiece model");
  renewed();
  EXPECT_THROW((void)DataDirectory::open(out).split("tset"), Error);
}

TEST(PrepareShared, Multi30k) {
  PLUMB_REQUIRE_SHARED("data/multi30k");
  const fs::path folder = test::shared_directory() / "data" / "multi30k";
  const TemporaryDirectory directory;
  PrepareOptions options;
  options.train = {folder / "val.de", folder / "val.en"};
  options.tests.emplace_back("2016", CorpusFiles{folder / "test_2016_flickr.de", folder / "test_2016_flickr.en"});
  options.tokenizer.vocabulary = 2000;
  prepare_data(options, directory / "out");
  const DataDirectory data = DataDirectory::open(directory / "out");
  EXPECT_EQ(data.split("2016").size(), 1000);
  EXPECT_EQ(data.source_vocabulary(), 2000);
  EXPECT_EQ(data.raw_target("2016"), read_lines(folder / "test_2016_flickr.en"));
}

TEST_F(Prepare, ASplitIsVerifiedWhenItIsUsed) {
  const fs::path out = directory_ / "out";
  prepare_data(options_, out);
  std::string damaged = read_file(out / "splits" / "train.tokens");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  write_file_atomic(out / "splits" / "train.tokens", damaged);
  const DataDirectory data = DataDirectory::open(out);
  EXPECT_EQ(data.split("valid").size(), 10);
  EXPECT_EQ(data.raw_source("train").size(), 190U);  // the text does not depend on the tokens
  EXPECT_THROW((void)data.split("train"), Error);
}

TEST_F(Prepare, TheTaskIsTranslation) {
  const fs::path out = directory_ / "out";
  Json info = prepare_data(options_, out);
  EXPECT_EQ(DataDirectory::open(out).task(), "translation");
  // Older directories do not record the task.
  info.erase("task");
  write_json(out / "data.json", info);
  EXPECT_EQ(DataDirectory::open(out).task(), "translation");
  info["text"] = {{"block", 0}};
  write_json(out / "data.json", info);
  EXPECT_EQ(DataDirectory::open(out).task(), "language-modeling");
}

TEST(PrepareSynthetic, SplitsShareNoTarget) {
  const TemporaryDirectory directory;
  prepare_synthetic({.pairs = 2000, .valid = 100, .test = 100, .tokenizer = {.vocabulary = 500}}, directory / "out");
  EXPECT_THROW(prepare_synthetic({.pairs = 2000, .valid = 1000, .test = 1000}, directory / "none"), Error);
  for (const int64_t pairs : {3, 7}) {
    const Error error = test::error_of([&] { prepare_synthetic({.pairs = pairs}, directory / "none"); });
    EXPECT_EQ(error.what(),
              std::to_string(pairs) +
                  " synthetic pairs are too few: one in 8 is held out for validation and one for the test");
    EXPECT_EQ(error.hint(), "use at least 8");
  }
  EXPECT_FALSE(fs::exists(directory / "none"));
  const DataDirectory data = DataDirectory::open(directory / "out");
  EXPECT_EQ(data.split_names(), (std::vector<std::string>{"train", "valid", "test"}));
  EXPECT_EQ(data.split("valid").size(), 100);
  EXPECT_EQ(data.split("test").size(), 100);
  std::set<std::string> seen;
  for (const std::string& name : data.split_names()) {
    std::set<std::string> targets;
    for (const std::string& target : data.raw_target(name)) targets.insert(target);
    for (const std::string& target : targets) EXPECT_TRUE(seen.insert(target).second) << target;
  }
}

TEST(PrepareSynthetic, SmallCorporaHaveSmallSplits) {
  const TemporaryDirectory directory;
  const Json info = prepare_synthetic({.pairs = 400, .tokenizer = {.vocabulary = 300}}, directory / "out");
  EXPECT_EQ(info["splits"]["train"]["pairs"], 300);
  EXPECT_EQ(info["splits"]["valid"]["pairs"], 50);  // an eighth
  EXPECT_EQ(info["splits"]["test"]["pairs"], 50);
}

TEST(PrepareSynthetic, ImpossibleNumbersAreRefused) {
  const TemporaryDirectory directory;
  constexpr int64_t kHuge = 4611686018427387904;
  const auto out = directory / "data";
  for (const int64_t pairs : {kHuge, int64_t{0}, int64_t{-1}}) {
    EXPECT_THROW(prepare_synthetic({.pairs = pairs}, out), Error) << pairs;
    EXPECT_THROW(prepare_synthetic_text(pairs, 1, {}, out), Error) << pairs;
    EXPECT_THROW(write_synthetic_text(pairs, 1, out.string()), Error) << pairs;
  }
  EXPECT_THROW(prepare_synthetic({.pairs = 100, .valid = kHuge, .test = kHuge}, out), Error);
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(PrepareSynthetic, TextIsTheEnglishSide) {
  const TemporaryDirectory directory;
  TextOptions options;
  options.block = 0;
  options.tokenizer.vocabulary = 300;
  options.valid_size = 20;
  prepare_synthetic_text(200, 5, options, directory / "out");
  write_synthetic_text(200, 5, (directory / "raw").string());
  const DataDirectory data = DataDirectory::open(directory / "out");
  EXPECT_EQ(data.task(), "language-modeling");
  const std::vector<std::string> english = read_lines(directory / "raw.en");
  EXPECT_EQ(data.raw_target("valid"), std::vector<std::string>(english.end() - 20, english.end()));
  EXPECT_EQ(read_lines(directory / "raw.de").size(), 200U);
}

}  // namespace
}  // namespace plumb
