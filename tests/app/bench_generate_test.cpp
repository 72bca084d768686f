// plumb bench generate: its report and its export.
#include <gtest/gtest.h>

#include <filesystem>

#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;
using test::TemporaryDirectory;

std::vector<std::string> small(const std::vector<std::string>& more) {
  return test::with(
      {"bench",        "generate", "--d-model", "16", "--feed-forward", "32", "--heads", "2", "--layers", "2",
       "--vocabulary", "50",       "--length",  "6",  "--tokens",       "4",  "--runs",  "1", "--json",   "-"},
      more);
}

TEST(BenchGenerate, ReportsBatchesAndWhatAnotherProgramNeeds) {
  const TemporaryDirectory directory;
  const std::string folder = (directory / "work").string();
  const Json json = Json::parse(test::succeeded(run_plumb(small({"--batch", "1,3", "--export", folder}))).output);
  ASSERT_EQ(json["batches"].size(), 2U);
  EXPECT_EQ(json["batches"][1]["rows"], 3);
  EXPECT_GT(json["batches"][1]["prefill_tokens_per_second"].get<double>(), 0);
  EXPECT_GT(json["batches"][1]["decode_tokens_per_second"].get<double>(), 0);
  EXPECT_FALSE(json.contains("contexts"));
  const Json work = read_json(folder + "/work.json");
  const Json& batch = work["batches"][1];
  ASSERT_EQ(batch["prompts"].size(), 3U);
  EXPECT_EQ(batch["prompts"][2].size(), 6U);
  ASSERT_EQ(batch["continuations"].size(), 3U);
  EXPECT_EQ(batch["continuations"][2].size(), 4U);
  EXPECT_LT(batch["log_probabilities"][2].get<double>(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/model.safetensors"));
}

TEST(BenchGenerate, ReportsTheStateAfterLongContexts) {
  for (const bool linear : {true, false}) {
    const Finished finished = run_plumb(small({"--attention", linear ? "linear" : "softmax", "--positions",
                                               linear ? "none" : "learned", "--batch", "1", "--contexts", "10,2000"}));
    ASSERT_EQ(finished.status, 0) << finished.errors;
    const Json contexts = Json::parse(finished.output)["contexts"];
    ASSERT_EQ(contexts.size(), 2U);
    EXPECT_EQ(contexts[1]["context"], 2000);
    EXPECT_GT(contexts[1]["seconds_per_token"].get<double>(), 0);
    EXPECT_EQ(contexts[1]["state_bytes"] == contexts[0]["state_bytes"], linear);
  }
}

}  // namespace
}  // namespace plumb
