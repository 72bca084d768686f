// Parameters in bfloat16: stochastic rounding on average, the copy against an optimizer in float32, resumption,
// sharding.
#include "plumb/optim/bfloat16_parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "options.h"
#include "plumb/base/error.h"
#include "plumb/divided/sharded_optimizer.h"
#include "support/gradcheck.h"
#include "support/ranks.h"

namespace plumb {
namespace {

constexpr uint64_t kSeed = 3;

Parameters rounded_parameters() {
  Parameters parameters(at::kFloat);
  parameters.add("a.weight", {9, 5}, Role::weight);
  parameters.add("b.weight", {7, 4}, Role::weight);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 1).to(at::kBFloat16));
  return parameters;
}

std::unique_ptr<Optimizer> adam_of(const Parameters& parameters, Bfloat16Parameters kind) {
  return with_bfloat16_parameters(make_optimizer("adam", parameters), parameters, kind, kSeed);
}

void step_on(Optimizer& optimizer, const Parameters& parameters, uint64_t first, uint64_t last) {
  for (uint64_t step = first; step < last; ++step)
    optimizer.step(parameters.split(testing::random_tensor({parameters.count()}, 100 + step).to(at::kFloat)), 0.01);
}

Tensor to_nearest(const Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }

TEST(Bfloat16Parameters, SmallStepsAreTakenOnAverage) {
  // Just below 1, bfloat16 numbers are 2⁻⁸ apart: a step of 1e-4 is taken in full with probability 0.0256.
  constexpr int kSteps = 50;
  constexpr double kRate = 1e-4, kUnit = 0x1p-8;
  constexpr int64_t kElements = 10000;
  Parameters parameters(at::kFloat);
  parameters.add("w", {kElements}, Role::weight);
  parameters.allocate();
  parameters.flat().fill_(1);
  const auto sgd =
      with_bfloat16_parameters(make_optimizer("sgd", parameters, test::options("[train.sgd]\nmomentum = 0\n")),
                               parameters, Bfloat16Parameters::stochastic, kSeed);
  for (int step = 0; step < kSteps; ++step) sgd->step({at::ones({kElements})}, kRate);
  EXPECT_TRUE(at::equal(parameters.flat(), to_nearest(parameters.flat())));
  const double share = kRate / kUnit;
  const double error = kUnit * std::sqrt(kSteps * share * (1 - share) / static_cast<double>(kElements));
  EXPECT_NEAR(parameters.flat().to(at::kDouble).mean().item<double>(), 1 - kSteps * kRate, 5 * error);
  EXPECT_GT(parameters.flat().std().item<double>(), 0);  // not all elements in the same step
}

TEST(Bfloat16Parameters, TheCopyIsTrainedAsInFloat32) {
  const Parameters plain = rounded_parameters(), rounded = rounded_parameters();
  const auto expected = make_optimizer("adam", plain);
  const auto found = adam_of(rounded, Bfloat16Parameters::copy);
  for (uint64_t step = 0; step < 5; ++step) {
    step_on(*expected, plain, step, step + 1);
    step_on(*found, rounded, step, step + 1);
    EXPECT_TRUE(at::equal(rounded.flat(), to_nearest(plain.flat())));
  }
  EXPECT_FALSE(at::equal(rounded.flat(), plain.flat()));
}

class BothKinds : public ::testing::TestWithParam<Bfloat16Parameters> {};
INSTANTIATE_TEST_SUITE_P(Bfloat16Parameters, BothKinds,
                         ::testing::Values(Bfloat16Parameters::stochastic, Bfloat16Parameters::copy));

TEST_P(BothKinds, ResumeBitForBit) {
  const Parameters whole = rounded_parameters(), first = rounded_parameters(), second = rounded_parameters();
  const auto uninterrupted = adam_of(whole, GetParam());
  step_on(*uninterrupted, whole, 0, 6);
  const auto before = adam_of(first, GetParam());
  step_on(*before, first, 0, 3);
  const auto after = adam_of(second, GetParam());
  second.flat().copy_(first.flat());
  after->load_state(before->state(), "before");
  step_on(*after, second, 3, 6);
  EXPECT_TRUE(at::equal(second.flat(), whole.flat()));
}

TEST_P(BothKinds, LeaveFrozenParametersAlone) {
  const Parameters parameters = rounded_parameters();
  const Tensor before = parameters.flat().clone();
  const auto optimizer = adam_of(parameters, GetParam());
  std::vector<ParameterStep> settings(2, {.learning_rate = 0.01});
  settings[0].frozen = true;
  for (int step = 0; step < 3; ++step) optimizer->step(parameters.split(at::ones({parameters.count()})), settings);
  EXPECT_TRUE(at::equal(parameters.flat().narrow(0, 0, 45), before.narrow(0, 0, 45)));
  EXPECT_FALSE(at::equal(parameters.flat().narrow(0, 45, 28), before.narrow(0, 45, 28)));
}

TEST_P(BothKinds, AreTheSameWithTheStateSharedOut) {
  const Parameters expected = rounded_parameters();
  step_on(*adam_of(expected, GetParam()), expected, 0, 4);
  const Bfloat16Parameters kind = GetParam();
  test::as_ranks(2, [&](const Group& group) {
    const Parameters parameters = rounded_parameters();
    const auto before = adam_of(parameters, kind);
    step_on(*before, parameters, 0, 1);
    ShardedOptimizer optimizer(parameters, group, [kind](const Parameters& some) { return adam_of(some, kind); });
    optimizer.load_state(before->state(), "before");
    step_on(optimizer, parameters, 1, 4);
    EXPECT_TRUE(at::equal(parameters.flat(), expected.flat()));
    NamedTensors full;
    for (const StateTensor& own : optimizer.state_tensors())
      full.emplace_back(name_of(own, parameters), optimizer.full(own));
    if (group.rank() > 0) return;
    const Parameters resumed = rounded_parameters();
    EXPECT_NO_THROW(adam_of(resumed, kind)->load_state(full, "collected"));
  });
}

TEST(Bfloat16Parameters, RefuseDoublesAveragesAndOtherStates) {
  Parameters doubles(at::kDouble);
  doubles.add("w", {2, 2}, Role::weight);
  doubles.allocate();
  EXPECT_THROW(adam_of(doubles, Bfloat16Parameters::stochastic), Error);
  const Parameters parameters = rounded_parameters();
  EXPECT_THROW(with_bfloat16_parameters(make_optimizer("schedule-free-adamw", parameters), parameters,
                                        Bfloat16Parameters::copy, kSeed),
               Error);
  const NamedTensors plain = make_optimizer("adam", parameters)->state();
  EXPECT_THROW(adam_of(parameters, Bfloat16Parameters::stochastic)->load_state(plain, "plain"), Error);
}

}  // namespace
}  // namespace plumb
