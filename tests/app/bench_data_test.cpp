// plumb bench data: an epoch has every token once.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::run_plumb;

TEST(BenchData, CountsTheTokensOfAnEpoch) {
  const test::TemporaryDirectory folder;
  std::string text;
  for (int line = 0; line < 100; ++line) text += "one two three four five six seven\n";  // and an end: 8 tokens each
  write_file_atomic(folder / "train.txt", text);
  test::succeeded(
      run_plumb({"data", "text", "--train", (folder / "train.txt").string(), "--valid", (folder / "train.txt").string(),
                 "--tokenizer", "word", "--vocabulary", "20", "--block", "16", "--out", (folder / "data").string()}));
  const Json json = Json::parse(
      test::succeeded(run_plumb({"bench", "data", (folder / "data").string(), "--batch-tokens", "64", "--json", "-"}))
          .output);
  EXPECT_EQ(json["examples"], 50);
  EXPECT_EQ(json["tokens"], 50 * 16);
  EXPECT_EQ(json["batches"], 13);  // of four blocks; the last has two
  EXPECT_GE(json["epoch_seconds"].get<double>(), json["first_batch_seconds"].get<double>());
}

}  // namespace
}  // namespace plumb
