// Cautious optimizers against the paper's algorithm (arXiv 2411.16085), written in loops.
#include "plumb/optim/cautious.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::Plain;

/// The direction u of an element, from its gradient and two numbers of state.
using Direction = std::function<double(double w, double g, double& m, double& v, int t, double weight_decay)>;

test::PlainStep cautious(const Direction& direction, bool decoupled) {
  return [=, moments = std::vector<std::pair<Numbers, Numbers>>(4)](size_t i, Plain& p, const Numbers& g, double rate,
                                                                    double weight_decay, int t) mutable {
    auto& [m, v] = moments[i];
    m.resize(g.size());
    v.resize(g.size());
    Numbers u(g.size());
    double kept = 0;
    for (size_t j = 0; j < g.size(); ++j) {
      u[j] = direction(p.w[j], g[j], m[j], v[j], t, weight_decay);
      if (u[j] * g[j] > 0) kept += 1;
    }
    const double mean = std::max(kept / static_cast<double>(g.size()), 1e-3);
    for (size_t j = 0; j < g.size(); ++j) {
      const double moved = u[j] * g[j] > 0 ? u[j] / mean : 0;
      p.w[j] -= rate * (moved + (decoupled ? weight_decay * p.w[j] : 0));
    }
  };
}

TEST(Cautious, AdamFollowsThePaper) {
  test::expect_steps("adamw", "",
                     cautious(
                         [](double, double g, double& m, double& v, int t, double) {
                           m = 0.9 * m + 0.1 * g;
                           v = 0.999 * v + 0.001 * g * g;
                           return m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
                         },
                         true),
                     true);
}

TEST(Cautious, LionFollowsThePaper) {
  test::expect_steps("lion", "",
                     cautious(
                         [](double, double g, double& m, double&, int, double) {
                           const double blend = 0.9 * m + 0.1 * g;
                           m = 0.99 * m + 0.01 * g;
                           return blend > 0 ? 1.0 : -1.0;
                         },
                         true),
                     true);
}

TEST(Cautious, DecayWithinTheDirectionIsPartOfIt) {
  test::expect_steps("sgd", "[train.sgd]\nnesterov = true\n",
                     cautious(
                         [](double w, double g, double& b, double&, int, double weight_decay) {
                           const double d = g + weight_decay * w;
                           b = 0.9 * b + d;
                           return d + 0.9 * b;
                         },
                         false),
                     true);
}

TEST(Cautious, RefusesAnOptimizerThatAverages) {
  Parameters parameters(at::kDouble);
  parameters.add("w", {2, 2}, Role::weight);
  parameters.allocate();
  EXPECT_THROW(make_cautious(make_optimizer("schedule-free-adamw", parameters), parameters), Error);
}

TEST(Cautious, WithNothingLeftTheRestIsNotBlownUp) {
  // One element of 10,000 agrees: its step is multiplied by 1,000, not by 10,000.
  Parameters parameters(at::kDouble);
  parameters.add("w", {100, 100}, Role::weight);
  parameters.allocate();
  const auto sgd =
      make_cautious(make_optimizer("sgd", parameters, test::options("[train.sgd]\nmomentum = 0.5\n")), parameters);
  const Tensor first = at::ones({100, 100}, at::kDouble);
  sgd->step({first}, 0.1);
  EXPECT_LT((parameters.flat() + 0.1).abs().max().item<double>(), 1e-15);
  parameters.flat().zero_();
  const Tensor second = first * -0.1;  // against the momentum, except for one element
  second[0][0] = 0.1;
  sgd->step({second}, 0.1);
  EXPECT_NEAR(parameters.flat()[0].item<double>(), -0.1 * (0.5 + 0.1) * 1000, 1e-9);
  EXPECT_EQ(parameters.flat().narrow(0, 1, 9999).abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace plumb
