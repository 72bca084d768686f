// plumb train --dry-run: a mesh of thousands of devices, looked at on one.
#include <gtest/gtest.h>

#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

test::Finished looked_at(const std::vector<std::string>& more) {
  std::vector<std::string> command = {"train",    "--dry-run",
                                      "--json",   "-",
                                      "--config", (test::source_directory() / "recipes" / "gopher-280b.toml").string()};
  command.insert(command.end(), more.begin(), more.end());
  return test::run_plumb(command);
}

TEST(DryRun, OfGopherOn4096Devices) {
  const Json json = Json::parse(test::succeeded(looked_at({})).output);
  const Json& mesh = json["mesh"];
  const auto tensor = mesh["tensor"].get<int64_t>(), data = mesh["data"].get<int64_t>();
  EXPECT_EQ(data * tensor * mesh["pipeline"].get<int64_t>(), 4096);
  int64_t ranks = 0, layers = 0;
  double parameters = 0;  // of a pipeline of one process per stage
  for (const Json& kind : json["kinds"]) {
    ranks += kind["ranks"].get<int64_t>();
    const int64_t stages = kind["last_stage"].get<int64_t>() - kind["first_stage"].get<int64_t>() + 1;
    layers += stages * kind["layers"].get<int64_t>();
    parameters += static_cast<double>(stages) * kind["parameters"].get<double>();
    EXPECT_LT(kind["memory"]["total"].get<double>(), 80.0 * (1 << 30));  // of an A100
  }
  EXPECT_EQ(ranks, 4096);
  EXPECT_EQ(layers, 80);
  // 13·d² in the matrices of a layer, relative positions among them, are divided, and so is the table, in the first and
  // the last stage. Norms are whole.
  const double d = 16384, matrices = 80 * 13 * d * d, table = 32000 * d;
  EXPECT_NEAR(parameters, (matrices + 2 * table) / static_cast<double>(tensor), 1e-3 * parameters);
}

// Lion has one momentum of four bytes per parameter, which ZeRO 1 divides; the average of the weights is whole.
TEST(DryRun, CountsTheStateOfTheOptimizer) {
  const auto bytes_of_first = [](const std::vector<std::string>& more) {
    const Json kind = Json::parse(test::succeeded(looked_at(more)).output)["kinds"][0];
    return std::pair(kind["memory"]["optimizer"].get<double>(), kind["parameters"].get<double>());
  };
  const auto [lion, parameters] = bytes_of_first({"--set", "train.optimizer=lion"});
  EXPECT_NEAR(lion, 4 * parameters / 32, 1);
  const auto [averaged, same] = bytes_of_first({"--set", "train.optimizer=lion", "--set", "train.average_decay=0.99"});
  EXPECT_NEAR(averaged, 4 * same / 32 + 4 * same, 1);
}

TEST(DryRun, IsOneOfThePlans) {
  const Json json = Json::parse(test::succeeded(looked_at({})).output);
  const Json plan = Json::parse(
      test::succeeded(
          test::run_plumb({"plan", (test::source_directory() / "recipes" / "gopher-280b.toml").string(), "--devices",
                           "4096", "--precision", "float32", "--show", "1000000", "--json", "-"}))
          .output);
  int found = 0;
  for (const Json& each : plan["splits"]) {
    const Json& split = each["split"];
    bool same = split["recompute"] == "attention";
    for (const char* key : {"data", "tensor", "pipeline", "zero", "micro_batch"})
      same &= split[key] == json["mesh"][key];
    if (!same) continue;
    ++found;
    EXPECT_TRUE(each["fits"]);
    double largest = 0;
    for (const Json& kind : json["kinds"]) largest = std::max(largest, kind["memory"]["activations"].get<double>());
    EXPECT_DOUBLE_EQ(each["memory"]["activations"].get<double>(), largest);
  }
  EXPECT_EQ(found, 1);
}

TEST(DryRun, OfSeveralRunsOfLayersInAStage) {
  const Json one = Json::parse(test::succeeded(looked_at({})).output);
  const Json five = Json::parse(test::succeeded(looked_at({"--set", "train.pipeline_chunks=5"})).output);
  const auto of_first = [](const Json& json, const char* what, const char* which) {
    return json["kinds"].front()[what][which].get<double>();
  };
  // 16 stages hold 16 micro-batches of 5 layers, or 2·15 + 4·16 + 1 of one.
  EXPECT_NEAR(of_first(five, "memory", "activations") / of_first(one, "memory", "activations"), 95 / 80.0, 1e-12);
  EXPECT_DOUBLE_EQ(of_first(five, "messages", "pipeline"), 9 * of_first(one, "messages", "pipeline"));
}

// The recipe's mesh is the first of the plan.
TEST(DryRun, OfWhatThePlanWrites) {
  const test::TemporaryDirectory folder;
  const std::string recipe = (test::source_directory() / "recipes" / "gopher-280b.toml").string();
  const std::vector<std::string> plan = {"plan", recipe,    "--devices",
                                         "4096", "--write", (folder / "run.toml").string()};
  EXPECT_EQ(test::run_plumb(plan).status, 2);  // for mixed precision
  std::vector<std::string> single = plan;
  single.insert(single.end(), {"--precision", "float32"});
  test::succeeded(test::run_plumb(single));
  const test::Finished found =
      test::run_plumb({"train", "--dry-run", "--json", "-", "--config", (folder / "run.toml").string()});
  const Json written = Json::parse(test::succeeded(found).output), recipe_itself = Json::parse(looked_at({}).output);
  for (const char* key : {"mesh", "micro_batches", "kinds"}) EXPECT_EQ(written[key], recipe_itself[key]) << key;
}

TEST(DryRun, FindsWhatDoesNotFitAndTheNearestMesh) {
  const auto refused = [](const std::vector<std::string>& set, const std::string& error, const std::string& nearest) {
    std::vector<std::string> options;
    for (const std::string& each : set) options.insert(options.end(), {"--set", each});
    const test::Finished found = looked_at(options);
    EXPECT_EQ(found.status, 1);
    EXPECT_CONTAINS(found.errors, error);
    EXPECT_CONTAINS(found.errors, "the nearest mesh of 4096 processes that fits: " + nearest);
  };
  refused({"train.tensor_parallel=256", "train.pipeline_parallel=8"},
          "model.heads = 128 cannot be divided among the 256 processes of train.tensor_parallel",
          "train.tensor_parallel = 128, train.pipeline_parallel = 8, with ");
  refused({"train.tensor_parallel=8", "train.pipeline_parallel=128"}, "a model of 80 layers cannot be cut into 128",
          "train.tensor_parallel = 8, train.pipeline_parallel = 64, with ");
  refused({"train.tensor_parallel=12", "train.pipeline_parallel=16"}, "is not a multiple of",
          "train.tensor_parallel = 16, train.pipeline_parallel = 16, with ");
  refused({"train.batch_tokens=40960", "train.tensor_parallel=8", "train.pipeline_parallel=16"},
          "a step of 40960 tokens has 20 sequences of 2048, too few for 32 groups",
          "train.tensor_parallel = 8, train.pipeline_parallel = 32, with ");
  refused({"model.norm=batchnorm"}, "a norm over the batch", "train.tensor_parallel = ");
}

}  // namespace
}  // namespace plumb
