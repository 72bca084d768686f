// Optimizers as preconditioned gradient descent: the divisor of the last step, and the edge of stability on a
// quadratic.
#include <gtest/gtest.h>

#include <cmath>

#include "options.h"
#include "plumb/optim/optimizer.h"

namespace plumb {
namespace {

NamedTensors by_prefix(const NamedTensors& state, const std::string& prefix) {
  NamedTensors found;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(prefix)) found.emplace_back(name, tensor.clone());
  }
  return found;
}

TEST(Preconditioning, IsWhatAdamDividesTheRunningMeanBy) {
  for (const char* name : {"adam", "adamw", "radam"}) {
    Parameters parameters(at::kDouble);
    parameters.add("a", {2, 3}, Role::weight);
    parameters.add("b", {4}, Role::bias);
    parameters.allocate();
    parameters.flat().copy_(at::linspace(-1, 1, 10, at::kDouble));
    const auto optimizer = make_optimizer(name, parameters);
    EXPECT_FALSE(optimizer->preconditioning());
    for (int t = 1; t <= 9; ++t) {  // RAdam divides by √v from step 6 on
      // The second parameter is trained from step 3 on.
      const std::vector<ParameterStep> settings = {{.learning_rate = 0.1}, {.learning_rate = 0.1, .frozen = t < 3}};
      const Tensor before = parameters.flat().detach().clone();
      const Tensor noise = at::sin(at::arange(10, at::kDouble) * (t + 0.7));
      optimizer->step({noise.narrow(0, 0, 6).view({2, 3}), noise.narrow(0, 6, 4)}, settings);
      const auto found = optimizer->preconditioning();
      ASSERT_TRUE(found);
      EXPECT_NEAR(found->stable_product, 38, 1e-12);
      ASSERT_EQ(found->diagonal.size(), 2U);
      std::vector<Tensor> m;
      for (const auto& [key, tensor] : by_prefix(optimizer->state(), "m.")) m.push_back(tensor);
      const Tensor expected = before - 0.1 * joined(m) / joined(found->diagonal);
      EXPECT_LT((parameters.flat().detach() - expected).abs().max().item<double>(), 1e-14) << name << t;
      EXPECT_EQ(found->diagonal[1].isinf().all().item<bool>(), t < 3);
    }
  }
}

TEST(Preconditioning, FloorIsTheDivisorOfElementsWithoutGradients) {
  for (const char* name : {"adam", "radam"}) {
    Parameters parameters(at::kDouble);
    parameters.add("a", {3}, Role::weight);
    parameters.add("b", {2}, Role::bias);
    parameters.allocate();
    const auto optimizer = make_optimizer(name, parameters);
    for (int t = 1; t <= 9; ++t) {
      optimizer->step({at::tensor({0.0, 1.0, -2.0}, at::kDouble), at::tensor({0.0, 3.0}, at::kDouble)},
                      std::vector<ParameterStep>{{.learning_rate = 0.1}, {.learning_rate = 0.1, .frozen = t < 3}});
      const auto found = optimizer->preconditioning();
      ASSERT_EQ(found->floor.size(), 2U);
      if (std::string(name) == "radam" && t < 6) {  // it does not divide by √v yet
        EXPECT_EQ(found->floor[0], 0);
        continue;
      }
      EXPECT_NEAR(found->floor[0] / found->diagonal[0][0].item<double>(), 1, 1e-12) << name << t;
      EXPECT_LT(found->floor[0], 1e-6 * found->diagonal[0][1].item<double>());
    }
    const double own_steps = 1 - std::pow(0.9, 7);  // the second parameter's
    if (std::string(name) == "adam") {
      EXPECT_NEAR(optimizer->preconditioning()->floor[1], 1e-9 * own_steps, 1e-18);
    }
  }
  Parameters parameters(at::kDouble);
  parameters.add("a", {3}, Role::weight);
  parameters.allocate();
  EXPECT_TRUE(make_optimizer("sgd", parameters)->preconditioning()->floor.empty());
}

/// |x| after 400 steps on λx²/2 from x = 1, with η at this share of the threshold for a preconditioner `divisor`.
double after(const std::string& name, const VariantOptions& given, double divisor, double share) {
  Parameters parameters(at::kDouble);
  parameters.add("x", {1, 1}, Role::weight);
  parameters.allocate();
  parameters.flat().fill_(1);
  const auto optimizer = make_optimizer(name, parameters, given);
  constexpr double kCurvature = 3;
  double rate = 0;
  if (const auto early = optimizer->preconditioning()) {
    rate = share * early->stable_product / kCurvature;
  } else {
    optimizer->step({at::zeros({1, 1}, at::kDouble)}, 0.0);
    rate = share * optimizer->preconditioning()->stable_product * divisor / kCurvature;
  }
  for (int t = 0; t < 400; ++t) optimizer->step({kCurvature * parameters.flat().detach().view({1, 1})}, rate);
  return std::abs(parameters.flat().item<double>());
}

TEST(Preconditioning, TheThresholdDividesDescentFromGrowth) {
  struct Case {
    const char* name;
    const char* options;
    double divisor;
  };
  // With an eps far above every gradient, Adam's divisor is eps.
  const Case cases[] = {{"sgd", "[train.sgd]\nmomentum = 0.0\n", 1},
                        {"sgd", "[train.sgd]\nmomentum = 0.6\n", 1},
                        {"sgd", "[train.sgd]\nmomentum = 0.6\nnesterov = true\n", 1},
                        {"adam", "[train.adam]\nbeta1 = 0.0\neps = 1e9\n", 1e9},
                        {"adam", "[train.adam]\nbeta1 = 0.6\neps = 1e9\n", 1e9}};
  for (const Case& each : cases) {
    const VariantOptions given = test::options(each.options);
    EXPECT_LT(after(each.name, given, each.divisor, 0.97), 1e-2) << each.options;
    EXPECT_GT(after(each.name, given, each.divisor, 1.03), 1e2) << each.options;
  }
  Parameters parameters(at::kDouble);
  parameters.add("x", {2, 2}, Role::weight);
  parameters.allocate();
  for (const char* name : {"lion", "muon"}) {
    const auto optimizer = make_optimizer(name, parameters);
    optimizer->step({at::ones({2, 2}, at::kDouble)}, 0.1);
    EXPECT_FALSE(optimizer->preconditioning()) << name;
  }
}

}  // namespace
}  // namespace plumb
