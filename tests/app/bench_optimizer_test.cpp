// plumb bench optimizer: its report and its export.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/optim/optimizer.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;
using test::TemporaryDirectory;

std::vector<std::string> small_decoder(const std::vector<std::string>& more) {
  return test::with({"bench", "optimizer", "--d-model", "16", "--feed-forward", "32", "--heads", "2", "--layers", "2",
                     "--vocabulary", "50", "--runs", "2", "--json", "-"},
                    more);
}

std::vector<std::string> names_of(const Json& json) {
  std::vector<std::string> names;
  for (const Json& entry : json["optimizers"]) names.push_back(entry["optimizer"]);
  return names;
}

TEST(BenchOptimizer, ReportsEveryOptimizer) {
  const Json json = Json::parse(test::succeeded(run_plumb(small_decoder({}))).output);
  EXPECT_EQ(names_of(json), optimizers().names());
  // Embeddings of tokens and positions; per layer four attention matrices, two of the feed-forward sub-layer, their
  // biases and two norms; the last norm.
  EXPECT_EQ(json["parameters"],
            (50 + 1024) * 16 + 2 * (4 * (16 * 16 + 16) + 2 * 16 * 32 + 32 + 16 + 2 * 2 * 16) + 2 * 16);
  for (const Json& entry : json["optimizers"]) {
    SCOPED_TRACE(entry.dump());
    EXPECT_GT(entry["seconds"].get<double>(), 0);
    EXPECT_GT(entry["mean_seconds"].get<double>(), 0);
    const double bytes = entry["state_bytes_per_parameter"];
    EXPECT_NEAR(1e9 * entry["gigabytes_per_second"].get<double>() * entry["seconds"].get<double>(),
                (12 + 2 * bytes) * json["parameters"].get<double>(), 1);
    // Besides floats, the state has a step count per parameter.
    const auto expected = std::map<std::string, double>{{"sgd", 4}, {"adam", 8}, {"schedule-free-adamw", 12}};
    const auto found = expected.find(entry["optimizer"]);
    if (found != expected.end()) {
      EXPECT_NEAR(bytes, found->second, 0.3);
    }
  }
}

TEST(BenchOptimizer, RoundsProductsIfWanted) {
  const Finished tried = run_plumb(small_decoder({"--optimizer", "muon", "--precision", "bf16"}));
  if (tried.status != 0) {
    EXPECT_CONTAINS(tried.errors, "oneDNN refused");
    GTEST_SKIP() << "this processor has no bfloat16 products";
  }
  const auto moved = [](const std::string& precision) {
    const TemporaryDirectory directory;
    const std::string folder = (directory / "work").string();
    test::succeeded(
        run_plumb(small_decoder({"--optimizer", "adam,muon", "--precision", precision, "--export", folder})));
    return read_json(folder + "/work.json")["moved"];
  };
  const Json exact = moved("float32"), rounded = moved("bf16");
  EXPECT_EQ(exact["adam"], rounded["adam"]);  // which multiplies nothing
  EXPECT_NE(exact["muon"], rounded["muon"]);
}

TEST(BenchOptimizer, TakesTheOptimizersAskedForInTheirOrder) {
  const Finished finished = test::succeeded(run_plumb(small_decoder({"--optimizer", "sgd,adam"})));
  EXPECT_EQ(names_of(Json::parse(finished.output)), (std::vector<std::string>{"sgd", "adam"}));
  const Finished unknown = run_plumb(small_decoder({"--optimizer", "sgd,adan"}));
  EXPECT_NE(unknown.status, 0);
  EXPECT_CONTAINS(unknown.errors, "unknown optimizer 'adan'");
}

TEST(BenchOptimizer, CautiousStepsExcludeOptimizersThatAverage) {
  const Finished finished = test::succeeded(run_plumb(small_decoder({"--cautious"})));
  std::vector<std::string> expected = optimizers().names();
  std::erase(expected, "nt-asgd");
  std::erase(expected, "schedule-free-adamw");
  EXPECT_EQ(names_of(Json::parse(finished.output)), expected);
  EXPECT_EQ(run_plumb(small_decoder({"--cautious", "--optimizer", "nt-asgd"})).status, 1);
}

TEST(BenchOptimizer, ExportsParametersGradientsAndHowFarTheyMoved) {
  const TemporaryDirectory directory;
  const std::string folder = (directory / "work").string();
  test::succeeded(run_plumb(small_decoder({"--optimizer", "nt-asgd,lion", "--export", folder})));
  const Json work = read_json(folder + "/work.json");
  double lion = 0, descent = 0, count = 0;  // sums of squares
  const NamedTensors tensors = load_safetensors(folder + "/model.safetensors");
  const double rate = work["learning_rate"], decay = work["weight_decay"];
  ASSERT_EQ(work["untimed_steps"], 6);
  for (const auto& [name, exported] : tensors) {
    if (name.starts_with("gradient.")) continue;
    const Tensor start = exported.to(at::kDouble);
    Tensor gradient;
    for (const auto& [other, values] : tensors) {
      if (other == "gradient." + name) gradient = values.to(at::kDouble);
    }
    ASSERT_TRUE(gradient.defined()) << name;
    Tensor by_lion = start, by_descent = start;
    for (int64_t step = 0; step < 6; ++step) {
      by_lion = by_lion - rate * (gradient.sign() + decay * by_lion);
      by_descent = by_descent - rate * (gradient + decay * by_descent);
    }
    lion += (by_lion - start).square().sum().item<double>();
    descent += (by_descent - start).square().sum().item<double>();
    count += static_cast<double>(start.numel());
  }
  EXPECT_NEAR(work["moved"]["lion"].get<double>(), std::sqrt(lion / count), 1e-4 * std::sqrt(lion / count));
  EXPECT_NEAR(work["moved"]["nt-asgd"].get<double>(), std::sqrt(descent / count), 1e-3 * std::sqrt(descent / count));
}

}  // namespace
}  // namespace plumb
