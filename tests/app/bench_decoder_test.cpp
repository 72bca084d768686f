// plumb bench decoder: its report and its export.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(BenchDecoder, DividesAStepByOperation) {
  const Json json =
      Json::parse(test::succeeded(run_plumb({"bench",     "decoder", "--d-model", "16", "--feed-forward", "32",
                                             "--heads",   "2",       "--layers",  "2",  "--vocabulary",   "50",
                                             "--texts",   "3",       "--length",  "8",  "--runs",         "2",
                                             "--profile", "--json",  "-"}))
                      .output);
  std::map<std::string, double> parts;
  for (const Json& part : json["profile"]) parts[part["name"]] = part["seconds"];
  const bool backward = std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.first.starts_with("backward: ") && part.first.size() > std::string("backward: ").size();
  });
  EXPECT_TRUE(backward) << json["profile"];
  for (const char* name : {"linear layer", "attention", "layer norm", "output and cross-entropy", "update of parameters",
                           "everything else"}) {
    ASSERT_TRUE(parts.contains(name)) << name << " in " << json["profile"];
    EXPECT_GT(parts[name], 0) << name;
  }
}

}  // namespace
}  // namespace plumb
