// `plumb data` from the user's perspective.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;
using test::TemporaryDirectory;

TEST(DataLabels, AreShownWithoutTheirControlCharacters) {
  const TemporaryDirectory directory;
  std::string train;
  for (int i = 0; i < 40; ++i)
    train += (i % 2 == 0 ? "\x1b[31mred\t" : "plain\t") + ("text " + std::to_string(i)) + "\n";
  write_file_atomic(directory / "train.tsv", train);
  const Finished finished = test::succeeded(run_plumb({"data", "labels", "--train", (directory / "train.tsv").string(),
                                                       "--vocabulary", "40", "--out", (directory / "out").string()}));
  EXPECT_CONTAINS(finished.output, "\\x1b[31mred ");
  EXPECT_LACKS(finished.output + finished.errors, "\x1b");
}

TEST(DataLabels, MakesADirectoryAndSaysWhatIsInIt) {
  const TemporaryDirectory directory;
  std::string train;
  for (int i = 0; i < 60; ++i) {
    train += (i % 2 == 0 ? "NUM:date,when was it " : "HUM:ind,\"who, if anyone, was ") + std::to_string(i) +
             (i % 2 == 0 ? "\n" : "\"\n");
  }
  write_file_atomic(directory / "train.csv", train);
  write_file_atomic(directory / "test.csv", "HUM:gr,who else\n");
  const std::vector<std::string> arguments = {"data",         "labels",
                                              "--train",      (directory / "train.csv").string(),
                                              "--test",       "mine=" + (directory / "test.csv").string(),
                                              "--separator",  "comma",
                                              "--label-end",  ":",
                                              "--vocabulary", "60",
                                              "--out",        (directory / "out").string()};
  const Finished finished = test::succeeded(run_plumb(arguments));
  EXPECT_CONTAINS(finished.output, "2 labels");
  EXPECT_CONTAINS(finished.output, "HUM 1, NUM 0");
  EXPECT_EQ(read_file(directory / "out" / "splits" / "mine.labels"), "HUM\n");
  EXPECT_EQ(read_file(directory / "out" / "splits" / "mine.source"), "who else\n");

  std::vector<std::string> other_seed = arguments;
  other_seed.insert(other_seed.end(), {"--seed", "2", "--json", "-"});
  const Finished refused = run_plumb(other_seed);
  EXPECT_EQ(refused.status, 2);
  EXPECT_CONTAINS(refused.errors, "holds the data of another command");
  EXPECT_EQ(run_plumb(arguments).status, 0);  // the same one
  other_seed.emplace_back("--replace");
  const Json info = Json::parse(run_plumb(other_seed).output);
  EXPECT_EQ(info["schema"], "plumb.data/1");
  EXPECT_EQ(info["seed"], 2);
  EXPECT_EQ(info["task"], "classification");
}

TEST(DataLabels, SaysWhichOptionHelps) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "train", "1\tcaf\xE9\n2\tb\n");
  const Finished finished =
      run_plumb({"data", "labels", "--train", (directory / "train").string(), "--out", (directory / "out").string()});
  EXPECT_EQ(finished.status, 1);
  EXPECT_CONTAINS(finished.errors, "train:1: not valid UTF-8\nhint: if the file is Latin-1, pass --encoding latin-1");
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--separator", "semicolon"}, {"--encoding", "ebcdic"}, {"--tokenizer-from", "x", "--vocabulary", "9"}}) {
    EXPECT_EQ(run_plumb(test::with({"data", "labels", "--train", "x", "--out", "y"}, wrong)).status, 2)
        << wrong.front();
  }
}

TEST(DataPrepare, JoinsSeveralCorpora) {
  const TemporaryDirectory directory;
  std::string web, news;
  for (int i = 0; i < 40; ++i) web += "Satz " + std::to_string(i) + "\tline " + std::to_string(i) + "\n";
  for (int i = 0; i < 20; ++i) news += "Satz " + std::to_string(40 + i) + "\n";
  write_file_atomic(directory / "web.tsv", web);
  write_file_atomic(directory / "news.de", news);
  write_file_atomic(directory / "news.en", news);
  const auto path = [&](const char* name) { return (directory / name).string(); };
  const Finished pairs = run_plumb({"data", "prepare", "--corpus", "web=" + path("web.tsv"), "--corpus",
                                    "news=" + path("news.de") + "," + path("news.en"), "--valid", path("web.tsv"),
                                    "--vocabulary", "40", "--out", path("pairs")});
  ASSERT_EQ(pairs.status, 0) << pairs.errors;
  EXPECT_CONTAINS(pairs.output, "    web               40 pairs\n    news              20 pairs\n");
  const Finished text =
      run_plumb({"data", "text", "--corpus", "de=" + path("news.de"), "--corpus", "en=" + path("news.en"), "--block",
                 "0", "--vocabulary", "40", "--out", path("text"), "--json", "-"});
  ASSERT_EQ(text.status, 0) << text.errors;
  EXPECT_EQ(Json::parse(text.output)["splits"]["train"]["corpora"],
            Json::parse(R"([{"name": "de", "pairs": 19}, {"name": "en", "pairs": 19}])"));  // 1 of 20 lines is held out
}

TEST(DataSynthesize, ASmallCorpusHasSplitsToo) {
  const TemporaryDirectory directory;
  const Finished finished = test::succeeded(
      run_plumb({"data", "synthesize", "--pairs", "1600", "--out", (directory / "out").string(), "--json", "-"}));
  EXPECT_EQ(Json::parse(finished.output)["splits"]["valid"]["pairs"], 200);
}

TEST(DataFiles, ShortenedWhileInUseAreAnError) {
  const TemporaryDirectory directory;
  const std::string data = (directory / "data").string();
  ASSERT_EQ(run_plumb({"data", "synthesize", "--pairs", "1600", "--out", data}).status, 0);
  test::Process training(test::plumb_program(), {"train",
                                                 "--data",
                                                 data,
                                                 "--out",
                                                 (directory / "run").string(),
                                                 "--threads",
                                                 "1",
                                                 "--set",
                                                 "model.d_model=8",
                                                 "--set",
                                                 "model.heads=1",
                                                 "--set",
                                                 "model.feed_forward=8",
                                                 "--set",
                                                 "model.encoder_layers=1",
                                                 "--set",
                                                 "model.decoder_layers=1",
                                                 "--set",
                                                 "train.steps=100000000",
                                                 "--set",
                                                 "train.batch_tokens=500",
                                                 "--set",
                                                 "train.log_every=1"});
  const auto metrics = directory / "run" / "metrics.jsonl";
  const auto begun = [&] { return std::filesystem::exists(metrics) && std::filesystem::file_size(metrics) > 0; };
  for (int i = 0; i < 6000 && !begun(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(begun());
  std::filesystem::resize_file(directory / "data" / "splits" / "train.tokens", 0);
  const Finished finished = training.wait();
  EXPECT_EQ(finished.status, 1) << finished.errors;
  EXPECT_CONTAINS(finished.errors, "plumb: error: a file in use can no longer be read: it was shortened");
}

TEST(DataSynthesize, TextHasAResultToo) {
  const TemporaryDirectory directory;
  const std::string raw = (directory / "raw").string();
  const Finished finished = test::succeeded(
      run_plumb({"data", "synthesize", "--pairs", "20", "--raw", raw, "--json", (directory / "result").string()}));
  EXPECT_EQ(finished.output, "");
  const Json result = read_json(directory / "result");
  EXPECT_EQ(result["schema"], "plumb.synthetic/1");
  EXPECT_EQ(result["pairs"], 20);
  for (const Json& file : result["files"]) EXPECT_EQ(read_lines(file.get<std::string>()).size(), 20U);
}

}  // namespace
}  // namespace plumb
