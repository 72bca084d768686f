// Schedule-Free AdamW against algorithm 1 of its paper (arXiv 2405.15682), with v's bias corrected in the step.
#include <gtest/gtest.h>

#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::Plain;

test::PlainStep schedule_free(double beta1, double beta2, double eps) {
  struct State {
    Numbers x, z, v;
    double largest = 0, sum = 0;
  };
  return [=, states = std::vector<State>(4)](size_t i, Plain& p, const Numbers& g, double rate, double weight_decay,
                                             int t) mutable {
    State& state = states[i];
    if (t == 1) {
      state.x = state.z = p.w;
      state.v.resize(g.size());
    }
    state.largest = std::max(state.largest, rate);
    state.sum += state.largest * state.largest;
    const double c = state.largest * state.largest / state.sum;
    for (size_t j = 0; j < g.size(); ++j) {
      const double y = p.w[j];
      state.v[j] = beta2 * state.v[j] + (1 - beta2) * g[j] * g[j];
      const double root = std::sqrt(state.v[j] / (1 - std::pow(beta2, t)));
      state.z[j] -= rate * (g[j] / (root + eps) + weight_decay * y);
      state.x[j] = (1 - c) * state.x[j] + c * state.z[j];
      p.w[j] = (1 - beta1) * state.z[j] + beta1 * state.x[j];
    }
  };
}

TEST(ScheduleFreeAdamW, FollowsItsPaper) {
  test::expect_steps("schedule-free-adamw", "", schedule_free(0.9, 0.999, 1e-8));
  test::expect_steps("schedule-free-adamw", "[train.schedule-free-adamw]\nbeta1 = 0.6\nbeta2 = 0.9\neps = 0.01\n",
                     schedule_free(0.6, 0.9, 0.01));
}

TEST(ScheduleFreeAdamW, EvaluatesTheMeanOfWhatTheStepsReach) {
  // With a constant rate, x is the plain mean of z_1 … z_t; frozen parameters are evaluated unchanged.
  Parameters parameters(at::kDouble);
  parameters.add("a", {3, 2}, Role::weight);
  parameters.add("b", {2}, Role::bias);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({8}, 1));
  const Tensor frozen = parameters.at("b").value.detach().clone();
  const auto optimizer = make_optimizer("schedule-free-adamw", parameters);
  EXPECT_TRUE(optimizer->averages_weights());
  EXPECT_TRUE(at::equal(optimizer->evaluation_weights(), parameters.flat()));
  Tensor sum = at::zeros({3, 2}, at::kDouble);
  for (int t = 1; t <= 6; ++t) {
    const std::vector<ParameterStep> settings = {{.learning_rate = 0.1}, {.learning_rate = 0.1, .frozen = true}};
    optimizer->step({testing::random_tensor({3, 2}, static_cast<uint64_t>(t)), at::ones({2}, at::kDouble)}, settings);
    Tensor z;
    for (const auto& [name, tensor] : optimizer->state()) {
      if (name == "z.a") z = tensor.clone();
    }
    sum += z;
    const std::vector<Tensor> found = parameters.split(optimizer->evaluation_weights());
    EXPECT_LT((found[0] - sum / t).abs().max().item<double>(), 1e-14);
    EXPECT_TRUE(at::equal(found[1], frozen));
    EXPECT_LT((parameters.at("a").value.detach() - (0.1 * z + 0.9 * found[0])).abs().max().item<double>(), 1e-14);
  }
}

TEST(ScheduleFreeAdamW, FindsWhatNoisyGradientsSurround) {
  // z keeps fluctuating around the minimum; its mean settles.
  Parameters parameters(at::kDouble);
  parameters.add("w", {20, 20}, Role::weight);
  parameters.allocate();
  const auto optimizer = make_optimizer("schedule-free-adamw", parameters);
  const Tensor wanted = testing::random_tensor({20, 20}, 3);
  for (uint64_t t = 1; t <= 2000; ++t) {
    const Tensor noise = 3 * testing::random_tensor({20, 20}, 100 + t);
    optimizer->step({parameters.flat().view({20, 20}) - wanted + noise}, 0.05);
  }
  Tensor z;
  for (const auto& [name, tensor] : optimizer->state()) {
    if (name == "z.w") z = tensor;
  }
  const auto distance = [&](const Tensor& w) { return (w.view({20, 20}) - wanted).square().mean().item<double>(); };
  EXPECT_LT(distance(optimizer->evaluation_weights()), 0.25 * distance(z));
}

}  // namespace
}  // namespace plumb
