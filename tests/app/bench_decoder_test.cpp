// plumb bench decoder: its report and its export.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;
using test::TemporaryDirectory;

TEST(BenchDecoder, ReportsAStepAndWhatAnotherProgramNeeds) {
  const TemporaryDirectory directory;
  const std::string folder = (directory / "work").string();
  const Finished finished =
      run_plumb({"bench",    "decoder", "--d-model",    "16",   "--feed-forward", "32", "--heads",  "2",
                 "--layers", "2",       "--vocabulary", "50",   "--texts",        "3",  "--length", "8",
                 "--runs",   "1",       "--export",     folder, "--json",         "-"});
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const Json json = Json::parse(finished.output);
  // Embeddings of tokens and positions; per layer four attention matrices, two of the feed-forward sub-layer, their
  // biases and two norms; the last norm.
  EXPECT_EQ(json["parameters"], (50 + 8) * 16 + 2 * (4 * (16 * 16 + 16) + 2 * 16 * 32 + 32 + 16 + 2 * 2 * 16) + 2 * 16);
  const double seconds = json["seconds_per_step"];
  EXPECT_NEAR(json["target_tokens_per_second"].get<double>() * seconds, 3 * 8, 1e-6);
  // Two operations per matrix parameter and token, half of 4·d·length for causal attention, three passes.
  const double flops = 3.0 * 3 * 8 * (2 * (2 * (4 * 16 * 16 + 2 * 16 * 32) + 2 * 16 * 8) + 2 * 16 * 50);
  EXPECT_NEAR(1e9 * json["gflops"].get<double>() * seconds, flops, 1e-3);

  const Json work = read_json(folder + "/work.json");
  EXPECT_EQ(work["what"], "decoder");
  const Json& batch = work["batches"][0];
  ASSERT_EQ(batch["target_input"].size(), 3U);
  for (size_t row = 0; row < 3; ++row) {
    ASSERT_EQ(batch["target_input"][row].size(), 8U);
    for (size_t i = 0; i + 1 < 8; ++i) EXPECT_EQ(batch["labels"][row][i], batch["target_input"][row][i + 1]);
  }
  EXPECT_NEAR(batch["loss"].get<double>(), std::log(50), 0.1);  // probabilities are nearly uniform
  EXPECT_TRUE(std::filesystem::exists(folder + "/model.safetensors"));
}

// The operations of the parts are those of the step, as they follow from the sizes.
TEST(BenchDecoder, DividesAStepByOperation) {
  const Json json =
      Json::parse(test::succeeded(run_plumb({"bench",     "decoder", "--d-model", "16", "--feed-forward", "32",
                                             "--heads",   "2",       "--layers",  "2",  "--vocabulary",   "50",
                                             "--texts",   "3",       "--length",  "8",  "--runs",         "2",
                                             "--profile", "--json",  "-"}))
                      .output);
  std::map<std::string, Json> parts;
  double operations = 0, seconds = 0;
  for (const Json& part : json["profile"]["parts"]) {
    parts[part["name"]] = part;
    operations += part["operations"].get<double>();
    seconds += part["seconds"].get<double>();
  }
  EXPECT_NEAR(operations, 1e9 * json["gflops"].get<double>() * json["seconds_per_step"].get<double>(), 1e-3);
  EXPECT_NEAR(seconds, json["profile"]["seconds"].get<double>(), 1e-9);
  const double tokens = 3 * 8;
  EXPECT_EQ(parts.at("linear layer, backward")["operations"], 4 * tokens * 2 * (4 * 16 * 16 + 2 * 16 * 32));
  EXPECT_EQ(parts.at("attention")["operations"], tokens * 2 * 2 * 16 * 8);
  EXPECT_EQ(parts.at("layer norm")["limit"], "memory");
  EXPECT_EQ(parts.at("layer norm")["bytes"], 5 * 2 * tokens * 16 * 4);
  const double parameters = json["parameters"];
  EXPECT_EQ(parts.at("update of parameters")["bytes"], 7 * 4 * parameters);  // gradient; value and moments, twice
  EXPECT_TRUE(parts.contains("everything else"));
}

}  // namespace
}  // namespace plumb
