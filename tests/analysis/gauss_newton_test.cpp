// The Gauss–Newton part of the Hessian compared with dense matrices built from the derivative of each logit.
#include "plumb/analysis/curvature/gauss_newton.h"
#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/curvature/function_hessian.h"
#include "plumb/analysis/curvature/split.h"
#include "plumb/base/error.h"
#include "support/batches.h"
#include "tiny_translator.h"

namespace plumb {
namespace {

using test::initialized;
using test::tiny_translator;

/// Two micro-batches with weighted labels.
std::vector<Batch> newton_batches() {
  std::vector<Batch> batches(2);
  append(batches[0], std::vector<int32_t>{4, 5, 6}, std::vector<int32_t>{6}, 0);
  append(batches[1], std::vector<int32_t>{5}, std::vector<int32_t>{4, 4, 5}, 1);
  batches[0].weights = {1.0, 0.5};
  batches[1].weights = {2.0, 1.0, 1.0, 0.25};
  return batches;
}

constexpr double kWeight = 5.75;  // their sum

Tensor logits_of(Model& model, const Batch& batch) {
  ForwardContext context(Pass::measurement);
  return model.logits(model.states(batch, context));
}

/// Σ JᵀCJ with J row by row, and C = weight/Σweight·(diag(p) − ppᵀ) for each label.
Tensor dense_gauss_newton(Model& model) {
  const std::vector<Tensor> values = model.parameters().values();
  const int64_t n = model.parameters().count();
  Tensor sum = at::zeros({n, n}, at::kDouble);
  for (const Batch& batch : newton_batches()) {
    const Tensor logits = logits_of(model, batch);
    for (int64_t i = 0; i < logits.size(0); ++i) {
      std::vector<Tensor> rows;
      for (int64_t c = 0; c < logits.size(1); ++c)
        rows.push_back(joined(gradients({logits[i][c]}, values, {}, false, /*retain_graph=*/true)));
      const Tensor jacobian = at::stack(rows);
      const Tensor e = logits[i].detach().exp();
      const Tensor p = e / e.sum();
      const Tensor curvature = at::diag(p) - at::outer(p, p);
      sum += batch.weights[static_cast<size_t>(i)] / kWeight * jacobian.t().matmul(curvature).matmul(jacobian);
    }
  }
  return sum;
}

Tensor dense_of(const LinearOperator& multiply, int64_t n) {
  std::vector<Tensor> columns;
  for (int64_t j = 0; j < n; ++j) {
    const Tensor unit = at::zeros({n}, at::kDouble);
    unit[j].fill_(1);
    columns.push_back(multiply(unit));
  }
  return at::stack(columns, 1);
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(GaussNewton, IsTheDenseMatrix) {
  for (const std::string residual : {"post-ln", "pre-ln"}) {
    const std::unique_ptr<Model> model = initialized(tiny_translator(residual));
    const Tensor expected = dense_gauss_newton(*model);
    GaussNewtonOperator kept(*model, newton_batches());
    EXPECT_EQ(kept.kept(), 2U);
    GaussNewtonOperator recomputed(*model, newton_batches(), 0);
    EXPECT_EQ(recomputed.kept(), 0U);
    const Tensor found = dense_of(std::ref(kept), kept.size());
    const double error = largest_difference(found, expected);
    RecordProperty(residual + "_error", std::to_string(error));
    EXPECT_LT(error, 1e-14 * std::max(1.0, expected.abs().max().item<double>()) * 10) << residual;
    EXPECT_GT(expected.abs().max().item<double>(), 0.01);
    const Tensor v = random_probe(kept.size(), at::kDouble, 2, 0);
    EXPECT_LT(largest_difference(recomputed(v), expected.matmul(v)), 1e-13);
    EXPECT_THROW(kept(v.narrow(0, 0, 3)), Error);
    EXPECT_THROW(kept(v.to(at::kFloat)), Error);
  }
}

TEST(GaussNewton, RestIsTheCurvatureOfTheLogits) {
  const std::unique_ptr<Model> model = initialized(tiny_translator("pre-ln"));
  const std::vector<Batch> batches = newton_batches();
  // R is the Hessian of Σ c·z with c = ∂L/∂z held fixed; with label smoothing c = weight·(p − q).
  constexpr double kSmoothing = 0.1;
  Tensor linear = at::zeros({}, at::kDouble);
  for (const Batch& batch : batches) {
    const Tensor logits = logits_of(*model, batch);
    Tensor target = at::full_like(logits, kSmoothing / static_cast<double>(logits.size(1)));
    for (int64_t i = 0; i < logits.size(0); ++i) target[i][batch.labels[static_cast<size_t>(i)]] += 1 - kSmoothing;
    const Tensor weights = at::tensor(batch.weights, at::kDouble).unsqueeze(1) / kWeight;
    const Tensor slope = weights * (at::softmax(logits.detach(), 1) - target.detach());
    linear = linear + (slope * logits).sum();
  }
  const LinearOperator rest = function_hessian(linear, model->parameters().values());
  HessianOptions options;
  options.label_smoothing = kSmoothing;
  HessianOperator hessian(*model, batches, options);
  GaussNewtonOperator gauss_newton(*model, batches);
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor v = random_probe(hessian.size(), at::kDouble, 3, i);
    EXPECT_LT(largest_difference(hessian(v) - gauss_newton(v), rest(v)), 1e-13);
    EXPECT_GT(rest(v).abs().max().item<double>(), 1e-4);
  }
}

TEST(GaussNewton, BlocksAreThoseOfTheWhole) {
  const std::unique_ptr<Model> model = initialized(tiny_translator("post-ln"));
  const Tensor whole = dense_gauss_newton(*model);
  GaussNewtonOperator gauss_newton(*model, newton_batches());
  const std::vector<Parameter>& all = model->parameters().all();
  for (const ParameterBlock& block : layer_blocks(model->parameters())) {
    std::vector<int64_t> rows;
    int64_t begin = 0;
    for (size_t place = 0; place < all.size(); ++place) {
      const int64_t size = all[place].value.numel();
      const bool inside = contains(block.places, place);
      for (int64_t i = 0; inside && i < size; ++i) rows.push_back(begin + i);
      begin += size;
    }
    const Tensor chosen = at::tensor(rows, at::kLong);
    const Tensor expected = whole.index_select(0, chosen).index_select(1, chosen);
    const auto multiply = [&](const Tensor& v) { return gauss_newton.multiply_block(block, v); };
    EXPECT_LT(largest_difference(dense_of(multiply, block.size), expected), 1e-13) << to_string(block.id);
  }
}

TEST(CurvatureSplit, ExtremesAreThoseOfTheDenseMatrices) {
  const std::unique_ptr<Model> model = initialized(tiny_translator("post-ln"));
  const Tensor gauss_newton = dense_gauss_newton(*model);
  HessianOperator operator_(*model, newton_batches());
  const Tensor hessian = dense_of(std::ref(operator_), operator_.size());
  CurvatureSplitOptions options;
  options.steps = 200;  // at least the rank of the matrices
  options.layer_steps = 60;
  const CurvatureSplit found = measure_curvature_split(*model, newton_batches(), options);
  const auto expect_extremes = [](const Extremes& extremes, const Tensor& matrix, const char* name) {
    const Tensor values = at::linalg_eigvalsh((matrix + matrix.t()) / 2);  // ascending
    EXPECT_NEAR(extremes.max.value, values[-1].item<double>(), extremes.max.error + 1e-10) << name;
    EXPECT_NEAR(extremes.min.value, values[0].item<double>(), extremes.min.error + 1e-10) << name;
    EXPECT_LT(extremes.max.error, 1e-6 * extremes.max.value) << name;
  };
  expect_extremes(found.whole.hessian, hessian, "hessian");
  expect_extremes(found.whole.gauss_newton, gauss_newton, "gauss_newton");
  expect_extremes(found.whole.rest, hessian - gauss_newton, "rest");
  EXPECT_GT(found.whole.gauss_newton.min.value, -1e-10);
  EXPECT_LT(found.whole.rest.min.value, -1e-3);
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(to_string(found.layers[1].id), "decoder.layers.0");
  for (const CurvatureSplit::Layer& layer : found.layers) {  // interlacing: a block's extremes are within the whole's
    EXPECT_LE(layer.split.hessian.max.value, found.whole.hessian.max.value + 1e-10);
    EXPECT_LE(layer.split.gauss_newton.max.value, found.whole.gauss_newton.max.value + 1e-10);
    EXPECT_GE(layer.split.rest.min.value, found.whole.rest.min.value - 1e-10);
  }

  const CurvatureSplitReport report = summarize({found, found});
  EXPECT_EQ(report.whole.rest.min.over_seeds.mean, found.whole.rest.min.value);
  EXPECT_EQ(report.layers[1].split.gauss_newton.max.over_seeds.count, 2);
  EXPECT_THROW(summarize(std::vector<CurvatureSplit>{}), Error);
}

}  // namespace
}  // namespace plumb
