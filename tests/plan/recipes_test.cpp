// The decoder recipes have the published numbers of parameters.
#include <gtest/gtest.h>

#include "plumb/plan/model_cost.h"
#include "support/paths.h"

namespace plumb::plan {
namespace {

int64_t parameters_of(const std::string& recipe) {
  ModelConfig config;
  Config::from_file(test::source_directory() / "recipes" / (recipe + ".toml")).read("model", config);
  return cost_of(config).parameters;
}

// As counted from the published checkpoints.
TEST(Recipes, HaveTheParametersOfTheirModels) {
  EXPECT_EQ(parameters_of("gpt-2"), 124439808);
  EXPECT_EQ(parameters_of("llama-3-8b"), 8030261248);
  EXPECT_EQ(parameters_of("qwen-3-0.6b"), 596049920);
}

// 13·L·d² + 32,000·d; norms and the biases of relative attention add a thousandth.
TEST(Recipes, OfGopherHaveTheSizesOfThePaper) {
  struct Case {
    const char* name;
    double parameters;
  };
  for (const Case& each : {Case{"gopher-44m", 43.65e6}, Case{"gopher-117m", 116.6e6}, Case{"gopher-417m", 417.2e6},
                           Case{"gopher-1.4b", 1.374e9}, Case{"gopher-7.1b", 7.110e9}, Case{"gopher-280b", 279.70e9}}) {
    EXPECT_NEAR(static_cast<double>(parameters_of(each.name)), each.parameters, 1.2e-3 * each.parameters) << each.name;
  }
}

}  // namespace
}  // namespace plumb::plan
