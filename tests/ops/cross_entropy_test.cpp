// Label weights; derivatives and both forms are tested in kernels/reference_test.cpp.
#include "plumb/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/implementations.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::random_tensor;
using Tensors = std::vector<Tensor>;

const std::vector<int64_t> kLabels = {2, 0, 4, 1};
const std::vector<double> kWeights = {0.25, 0.0, 3.0, 1.0};

/// −log p(label), row by row.
std::vector<double> negative_log_probabilities(const Tensor& logits) {
  std::vector<double> nll;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    double sum = 0;
    for (int64_t c = 0; c < logits.size(1); ++c) sum += std::exp(logits[i][c].item<double>());
    nll.push_back(std::log(sum) - logits[i][kLabels[static_cast<size_t>(i)]].item<double>());
  }
  return nll;
}

TEST(CrossEntropy, CountsEveryLabelByItsWeight) {
  const Tensor hidden = random_tensor({4, 3}, 1), weight = random_tensor({5, 3}, 2), bias = random_tensor({5}, 3);
  const Tensor logits = at::mm(hidden, weight.t()) + bias;
  const std::vector<double> nll = negative_log_probabilities(logits);
  const double expected = 0.25 * nll[0] + 3.0 * nll[2] + nll[3];
  const ops::CrossEntropy of_logits = ops::cross_entropy(logits, kLabels, kWeights, 0.0, 0.5);
  const ops::CrossEntropy fused = ops::linear_cross_entropy(hidden, weight, bias, kLabels, kWeights, 0.0, 0.5);
  for (const ops::CrossEntropy& found : {of_logits, fused}) {
    EXPECT_NEAR(found.nll, expected, 1e-13 * expected);
    EXPECT_NEAR(found.loss.item<double>(), 0.5 * expected, 1e-13 * expected);
  }
}

TEST(CrossEntropy, RowsOfWeightZeroPlayNoPart) {
  // Not even if their logits are NaN.
  Tensor logits = random_tensor({4, 5}, 1);
  logits[1].fill_(std::numeric_limits<double>::quiet_NaN());
  const Tensor rest = logits.index_select(0, at::tensor({0, 2, 3}, at::kLong));
  const auto derivatives = [](const Tensor& at, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                              const Tensor& v) {
    const Tensor x = at.detach().clone().requires_grad_(true);
    const ops::CrossEntropy loss = ops::cross_entropy(x, labels, weights, 0.1, 0.5);
    const Tensor first = gradients({loss.loss}, {x}, {}, /*create_graph=*/true)[0];
    const Tensor second = gradients({first}, {x}, {v})[0];
    return Tensors{loss.loss.detach(), first.detach(), second};
  };
  const Tensor v = random_tensor({4, 5}, 2);
  const Tensors found = derivatives(logits, kLabels, kWeights, v);
  const Tensors expected =
      derivatives(rest, {2, 4, 1}, {0.25, 3.0, 1.0}, v.index_select(0, at::tensor({0, 2, 3}, at::kLong)));
  EXPECT_EQ(found[0].item<double>(), expected[0].item<double>());
  for (const size_t order : {1, 2}) {
    EXPECT_TRUE((found[order][1] == 0).all().item<bool>());
    EXPECT_TRUE(found[order].index_select(0, at::tensor({0, 2, 3}, at::kLong)).equal(expected[order]));
  }
}

/// Loss, and its first derivative and a product with its second one by the logits.
template <typename Operation>
Tensors loss_and_derivatives(const Operation& operation, const Tensor& logits, double smoothing, const Tensor& v) {
  const Tensor x = logits.detach().clone().requires_grad_(true);
  const ops::CrossEntropy loss = operation(x, kLabels, kWeights, smoothing, 0.5);
  const Tensor first = gradients({loss.loss}, {x}, {}, /*create_graph=*/true)[0];
  return {loss.loss.detach(), first.detach(), gradients({first}, {x}, {v})[0]};
}

// A bias of −∞ excludes a word. Without smoothing, it is as if the vocabulary did not have it.
TEST(CrossEntropy, AWordOfProbabilityZeroPlaysNoPart) {
  constexpr int64_t kExcluded = 3;
  Tensor logits = random_tensor({4, 5}, 1), v = random_tensor({4, 5}, 2);
  logits.select(1, kExcluded).fill_(-std::numeric_limits<double>::infinity());
  v.select(1, kExcluded).zero_();
  const std::vector<double> nll = negative_log_probabilities(logits);
  const Tensor possible = at::tensor({0, 1, 2, 4}, at::kLong);
  const auto shortened = [&](const Tensor& x) { return x.index_select(1, possible); };
  const auto without = [](const Tensor& x, std::vector<int64_t> labels, const std::vector<double>& weights,
                          double smoothing, double scale) {
    for (int64_t& label : labels) label -= label > kExcluded ? 1 : 0;
    return ops::cross_entropy(x, labels, weights, smoothing, scale);
  };
  const Tensors expected = loss_and_derivatives(without, shortened(logits), 0, shortened(v));
  for (const auto& operation : {&ops::cross_entropy, &ops::reference::cross_entropy}) {
    const Tensors found = loss_and_derivatives(*operation, logits, 0, v);
    EXPECT_NEAR(found[0].item<double>(), 0.5 * (0.25 * nll[0] + 3 * nll[2] + nll[3]), 1e-13);
    for (const size_t order : {1, 2}) {
      EXPECT_TRUE((found[order].select(1, kExcluded) == 0).all().item<bool>()) << order;
      EXPECT_TRUE(at::allclose(shortened(found[order]), expected[order], 0, 1e-14)) << order;
    }
    // Smoothing asks for every word, also for this one.
    EXPECT_EQ(operation(logits, kLabels, kWeights, 0.1, 0.5).loss.item<double>(),
              std::numeric_limits<double>::infinity());
  }
  const Tensor hidden = random_tensor({4, 3}, 3), weight = random_tensor({5, 3}, 4);
  Tensor bias = random_tensor({5}, 5);
  bias[kExcluded] = -std::numeric_limits<double>::infinity();
  const Tensor few = shortened(at::addmm(bias, hidden, weight.t()));
  for (const auto& operation : {&ops::linear_cross_entropy, &ops::reference::linear_cross_entropy}) {
    EXPECT_NEAR(operation(hidden, weight, bias, kLabels, kWeights, 0, 0.5).loss.item<double>(),
                without(few, kLabels, kWeights, 0, 0.5).loss.item<double>(), 1e-13);
  }
}

TEST(CrossEntropy, WeightsOfOneChangeNoBit) {
  const Tensor hidden = random_tensor({4, 3}, 1).to(at::kFloat).requires_grad_(true);
  const Tensor weight = random_tensor({5, 3}, 2).to(at::kFloat).requires_grad_(true);
  const auto found = [&](const std::vector<double>& weights) {
    const Tensor loss = ops::linear_cross_entropy(hidden, weight, Tensor(), kLabels, weights, 0.1, 0.3).loss;
    Tensors all = gradients({loss}, {hidden, weight}, {});
    all.push_back(loss.detach());
    return all;
  };
  const Tensors none = found({}), ones = found({1, 1, 1, 1});
  for (size_t i = 0; i < none.size(); ++i) EXPECT_TRUE(none[i].equal(ones[i]));
}

TEST(CrossEntropy, RefusesLabelsAndWeightsThatDoNotFit) {
  const Tensor logits = random_tensor({4, 5}, 1);
  EXPECT_THROW(ops::cross_entropy(logits, {1, 2, 3}, {}, 0.0, 1.0), Error);
  EXPECT_THROW(ops::cross_entropy(logits, {1, 2, 3, 5}, {}, 0.0, 1.0), Error);
  EXPECT_THROW(ops::cross_entropy(logits, kLabels, {1, 1, 1}, 0.0, 1.0), Error);
}

}  // namespace
}  // namespace plumb
