// The files in recipes/ are valid configurations, and their models can be built.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/input.h"
#include "plumb/model/kind.h"
#include "plumb/model/model.h"
#include "plumb/ops/device.h"
#include "plumb/run/config.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

RunConfig recipe(const std::string& name) {
  return read_run_config(Config::from_file(test::source_directory() / "recipes" / (name + ".toml")));
}

TEST(Recipes, CanAllBeTrained) {
  const std::string page = read_file(test::source_directory() / "docs" / "training.md");
  const ops::DefaultDevice nowhere{at::Device(at::kMeta)};  // some models are larger than any memory
  size_t recipes = 0;
  for (const auto& entry : fs::directory_iterator(test::source_directory() / "recipes")) {
    SCOPED_TRACE(entry.path().string());
    ++recipes;
    RunConfig config = read_run_config(Config::from_file(entry.path()));
    validate(config.train);  // and its schedule
    if (!config.data.empty()) {
      EXPECT_EQ(config.data, "data/" + entry.path().stem().string());
    }
    EXPECT_CONTAINS(page, "../recipes/" + entry.path().filename().string()) << "not in the page";
    config.model.source_vocabulary = config.model.target_vocabulary = 40;  // as the data would set them
    if (model_kind(config.model.kind).only_encodes()) config.model.labels = 6;
    const std::unique_ptr<Model> model = make_model(config.model);
    (void)parameter_settings(model->parameters(), config.train.groups, config.train.weight_decay);  // patterns match
  }
  EXPECT_EQ(recipes, 15U);
}

// Vaswani et al. 2017, equation 3: d^(−1/2)·min(step^(−1/2), step·warmup^(−3/2)).
TEST(Recipes, Wmt14HasThePapersLearningRate) {
  const RunConfig config = recipe("wmt14");
  const Schedule schedule = make_schedule(config.train, config.model.d_model);
  for (const int64_t step : {1, 100, 3999, 4000, 4001, 50000, 100000}) {
    const auto n = static_cast<double>(step);
    const double expected = std::pow(512, -0.5) * std::min(std::pow(n, -0.5), n * std::pow(4000, -1.5));
    EXPECT_NEAR(schedule(step) / expected, 1, 1e-4) << step;
  }
}

}  // namespace
}  // namespace plumb
