// Parameter groups: which parameters decay, have their own learning rate, or are frozen.
#include "plumb/optim/groups.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "support/errors.h"

namespace plumb {
namespace {

Parameters make_parameters() {
  Parameters parameters(at::kFloat);
  parameters.add("src_embed.weight", {100, 8}, Role::embedding);
  parameters.add("encoder.layers.0.linear1.weight", {16, 8}, Role::feed_forward_input);
  parameters.add("encoder.layers.0.linear1.bias", {16}, Role::bias);
  parameters.add("encoder.layers.0.norm1.weight", {8}, Role::gain);
  parameters.add("encoder.layers.1.linear1.weight", {16, 8}, Role::feed_forward_input);
  parameters.add("encoder.layers.1.r_content.bias", {2, 4}, Role::position);
  parameters.add_constant("encoder.layers.1.zero_add1.gamma", {1}, 0);
  parameters.allocate();
  return parameters;
}

TEST(ParameterSettings, DecayMatricesAndEmbeddingsAlone) {
  const auto settings = parameter_settings(make_parameters(), {}, 0.01);
  std::vector<double> decays;
  for (const ParameterSettings& each : settings) {
    decays.push_back(each.weight_decay);
    EXPECT_EQ(each.rate_factor, 1);
    EXPECT_EQ(each.frozen_until, 0);
  }
  EXPECT_EQ(decays, (std::vector<double>{0.01, 0.01, 0, 0, 0.01, 0, 0}));
}

TEST(ParameterSettings, AreThoseOfTheFirstGroupThatMatches) {
  const std::vector<ParameterGroup> groups = {
      {.pattern = {"*.bias", "*norm?.weight"}, .learning_rate_factor = 2},
      {.pattern = {"encoder.layers.0.*"}, .learning_rate_factor = 0.5, .frozen_until = 10},
      {.pattern = {"encoder.*"}, .weight_decay = 0.3},
      {.pattern = {"src_embed.weight"}, .weight_decay = 0, .frozen_until = -1}};
  const auto settings = parameter_settings(make_parameters(), groups, 0.01);
  const std::vector<ParameterSettings> expected = {
      {1, 0, -1},       // from the last group
      {0.5, 0.01, 10},  // from the second group
      {2, 0, 0},        // from the first group, not the second; a bias without an explicit decay has none
      {2, 0, 0},       {1, 0.3, 0}, {2, 0, 0},  // "*.bias"
      {1, 0.3, 0}};                             // an explicit decay applies to scalars too
  EXPECT_EQ(settings, expected);
}

TEST(ParameterSettings, GiveEachStepItsRatesAndWhatIsFrozen) {
  const std::vector<ParameterSettings> settings = {{1, 0.1, 0}, {0.5, 0, 3}, {2, 0, -1}};
  EXPECT_EQ(parameter_steps(settings, 2, 0.25),
            (std::vector<ParameterStep>{{0.25, 0.1, false}, {0.125, 0, true}, {0.5, 0, true}}));
  EXPECT_EQ(parameter_steps(settings, 3, 0.25),
            (std::vector<ParameterStep>{{0.25, 0.1, false}, {0.125, 0, false}, {0.5, 0, true}}));
}

TEST(ParameterSettings, MayHaveAWarmUpOfTheirOwn) {
  const auto settings =
      parameter_settings(make_parameters(), {{.pattern = {"encoder.*"}, .learning_rate_factor = 2, .warm_up = 4}}, 0);
  const auto rates = [&](int64_t step) {
    const auto steps = parameter_steps(settings, step, 0.1);
    return std::pair(steps[0].learning_rate, steps[1].learning_rate);
  };
  EXPECT_EQ(rates(1), std::pair(0.1, 0.2 * 0.25));
  EXPECT_EQ(rates(4), std::pair(0.1, 0.2));
  EXPECT_EQ(rates(9), std::pair(0.1, 0.2));
}

Error error_of(const ParameterGroup& group) {
  return test::error_of([&] { parameter_settings(make_parameters(), {group}, 0); });
}

TEST(ParameterGroups, WithAPatternThatMatchesNothingNameTheNearestParameter) {
  const Error error = error_of({.pattern = {"*", "encoder.layer.1.*"}});
  EXPECT_STREQ(error.what(), "[[train.groups]]: the pattern 'encoder.layer.1.*' matches no parameter");
  EXPECT_EQ(error.hint(), "the closest is 'encoder.layers.1.linear1.weight'; * matches any characters");
  // A pattern must match the whole name.
  EXPECT_EQ(error_of({.pattern = {"norm1"}}).hint().find("the closest is"), 0U);
}

TEST(ParameterGroups, OutOfRangeAreErrors) {
  EXPECT_STREQ(error_of({}).what(), "a group of [[train.groups]] has no pattern");
  EXPECT_STREQ(error_of({.pattern = {"*"}, .learning_rate_factor = -1}).what(),
               "train.groups.learning_rate_factor = -1 must be at least 0");
  EXPECT_STREQ(error_of({.pattern = {"*"}, .weight_decay = -0.1}).what(),
               "train.groups.weight_decay = -0.1 must be at least 0, or -1");
  EXPECT_STREQ(error_of({.pattern = {"*"}, .frozen_until = -2}).what(),
               "train.groups.frozen_until = -2 must be at least -1");
}

TEST(ParameterGroups, AreSummedUp) {
  const Parameters parameters = make_parameters();
  const auto lines = [&](const std::vector<ParameterGroup>& groups, double decay) {
    return settings_summary(parameters, parameter_settings(parameters, groups, decay));
  };
  EXPECT_TRUE(lines({}, 0).empty());
  // 800 + 128 + 128 of 800 + 128 + 16 + 8 + 128 + 8 + 1.
  EXPECT_EQ(lines({}, 0.01), (std::vector<std::string>{"weight decay 0.01 for 1,056 of 1,089 parameters; none for "
                                                       "norms, biases, scalars and positions"}));
  EXPECT_EQ(
      lines({{.pattern = {"src*"}, .learning_rate_factor = 0.5, .weight_decay = 0, .frozen_until = -1},
             {.pattern = {"*.0.*"}, .weight_decay = 0.1, .frozen_until = 7}},
            0.01),
      (std::vector<std::string>{"weight decay 0.01 for 128 of 1,089 parameters",
                                "weight decay 0.1 for 152 of 1,089 parameters; none for the rest",
                                "learning rate × 0.5 for 800 of 1,089 parameters", "800 of 1,089 parameters are frozen",
                                "152 of 1,089 parameters are frozen until step 7"}));
}

}  // namespace
}  // namespace plumb
