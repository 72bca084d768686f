// LAMB against algorithm 2 of its paper (arXiv 1904.00962).
#include <gtest/gtest.h>

#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::Plain;

test::PlainStep lamb(double beta1, double beta2, double eps, bool vectors) {
  return [=, moments = std::vector<std::pair<Numbers, Numbers>>(4)](size_t i, Plain& p, const Numbers& g, double rate,
                                                                    double weight_decay, int t) mutable {
    auto& [m, v] = moments[i];
    m.resize(g.size());
    v.resize(g.size());
    const size_t matrices = p.name == "qkv" ? 2 : 1, n = g.size() / matrices;
    for (size_t matrix = 0; matrix < matrices; ++matrix) {
      Numbers u(n), w(n);
      for (size_t j = 0; j < n; ++j) {
        const size_t k = matrix * n + j;
        m[k] = beta1 * m[k] + (1 - beta1) * g[k];
        v[k] = beta2 * v[k] + (1 - beta2) * g[k] * g[k];
        const double mean = m[k] / (1 - std::pow(beta1, t)), square = v[k] / (1 - std::pow(beta2, t));
        w[j] = p.w[k];
        u[j] = mean / (std::sqrt(square) + eps) + weight_decay * w[j];
      }
      const double ratio = p.matrix || vectors ? test::length(w) / test::length(u) : 1;
      for (size_t j = 0; j < n; ++j) p.w[matrix * n + j] -= rate * ratio * u[j];
    }
  };
}

TEST(Lamb, FollowsItsPaper) {
  test::expect_steps("lamb", "", lamb(0.9, 0.999, 1e-6, true));
  test::expect_steps("lamb", "[train.lamb]\nbeta1 = 0.7\nbeta2 = 0.9\neps = 0.01\nadapt_vectors = false\n",
                     lamb(0.7, 0.9, 0.01, false));
}

TEST(Lamb, TakesAStepFromZeroAndWithoutAGradient) {
  Parameters parameters(at::kDouble);
  parameters.add("zero", {2, 2}, Role::weight);
  parameters.add("still", {2, 2}, Role::weight);
  parameters.allocate();
  parameters.at("still").value.detach().fill_(3);
  const Tensor still = at::zeros({2, 2}, at::kDouble);
  make_optimizer("lamb", parameters)->step({at::full({2, 2}, 5, at::kDouble), still}, 0.1);
  EXPECT_LT((parameters.at("zero").value + 0.1).abs().max().item<double>(), 1e-6);  // with a ratio of 1
  EXPECT_TRUE(at::equal(parameters.at("still").value, at::full({2, 2}, 3, at::kDouble)));
}

}  // namespace
}  // namespace plumb
