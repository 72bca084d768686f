// The curvature along a training run compared with dense matrices, in float64.
#include "plumb/analysis/watch/curvature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "along_training.h"
#include "plumb/analysis/curvature/hessian.h"

namespace plumb {
namespace {

using CurvatureAlongTraining = test::AlongTraining;

/// The tensors of a file whose names begin with a prefix, concatenated in the order of the parameters.
Tensor stored(const NamedTensors& state, const std::string& prefix, const Parameters& parameters) {
  std::vector<Tensor> pieces;
  for (const Parameter& parameter : parameters.all()) {
    for (const auto& [name, tensor] : state) {
      if (name == prefix + parameter.name) pieces.push_back(tensor);
    }
  }
  return joined(pieces);
}

double largest_real(const Tensor& matrix) { return at::real(at::linalg_eigvals(matrix)).max().item<double>(); }

TEST_F(CurvatureAlongTraining, CurvatureIsThatOfTheDenseMatrices) {
  // Different rates, and a group that never moves.
  run_.train.groups = {{.pattern = {"encoder.*linear*"}, .learning_rate_factor = 0.25},
                       {.pattern = {"decoder.*norm*"}, .frozen_until = -1}};
  Config::from_string("[train.adam]\neps = 1e-3\n", "test").read("train", run_.train);  // near which some elements are
  read_watch("what = \"curvature\"\n[watch.curvature]\nproducts = 300\nfirst_products = 300\ntolerance = 1e-9\n");
  const auto trained = model();
  const Parameters& parameters = trained->parameters();
  const int64_t n = parameters.count();
  Trainer trainer(*trained, run_.train, *task_, run_.watch);
  const Schedule schedule = make_schedule(run_.train, run_.model.d_model);
  int compared = 0;
  double shares = 0;
  test::Moments moments;
  moments.watch = [&](const WatchRecord& record) {
    const auto found = record.find<CurvatureMeasurement>();
    ASSERT_TRUE(found) << to_json(record);
    // The Hessian of the mean loss over the first ten examples, column by column.
    HessianOptions options;
    options.label_smoothing = run_.train.label_smoothing;
    HessianOperator hessian(*trained, {examples({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}, options);
    const Tensor matrix = at::empty({n, n}, at::kDouble);
    const Tensor unit = at::zeros({n}, at::kDouble);
    for (int64_t j = 0; j < n; ++j) {
      unit[j].fill_(1);
      matrix.select(1, j).copy_(hessian(unit));
      unit[j].fill_(0);
    }
    std::vector<Tensor> rates;
    for (const Parameter& parameter : parameters.all()) {
      const bool slow = parameter.name.starts_with("encoder.") && parameter.name.find("linear") != std::string::npos;
      const bool frozen = parameter.name.starts_with("decoder.") && parameter.name.find("norm") != std::string::npos;
      rates.push_back(at::full_like(parameter.value.detach(), frozen ? 0 : slow ? 0.25 : 1));
    }
    const Tensor rate = joined(rates);
    const Tensor moving = (rate > 0).to(at::kDouble);
    EXPECT_NEAR(found->hessian.found.value, largest_real(moving.unsqueeze(1) * matrix * moving), 1e-7);
    EXPECT_FALSE(found->hessian.threshold);
    ASSERT_EQ(found->preconditioned.has_value(), record.step > 0);
    ++compared;
    if (record.step == 0) return;
    const Sharpness& sharpness = *found->preconditioned;
    std::filesystem::create_directories(folder_ / "saved");
    trainer.save(folder_ / "saved");
    const NamedTensors state = load_safetensors(folder_ / "saved" / "optimizer.safetensors");
    const double t = static_cast<double>(record.step);
    const Tensor v = stored(state, "v.", parameters);
    const Tensor p = (1 - std::pow(0.9, t)) * ((v / (1 - std::pow(0.98, t))).sqrt() + 1e-3);
    const double expected = largest_real((rate / p).unsqueeze(1) * matrix);  // not symmetric
    EXPECT_NEAR(sharpness.found.value / expected, 1, 1e-6);
    EXPECT_LT(sharpness.found.residual, 1e-6 * expected);
    EXPECT_NEAR(sharpness.threshold.value(), 38 / schedule(record.step), 1e-6);
    // Of its eigenvector, in the elements whose running mean of squared gradients is close to eps.
    const Tensor s = (rate / p).sqrt();
    const auto [values, vectors] = at::linalg_eigh(s.unsqueeze(1) * (matrix + matrix.t()) / 2 * s);
    const Tensor small = (v / (1 - std::pow(0.98, t))).sqrt() < 1e-2;
    const Tensor mass = vectors.select(1, n - 1).square();
    EXPECT_NEAR(sharpness.share_at_epsilon.value(), (mass * small).sum().item<double>(), 1e-5);
    shares += sharpness.share_at_epsilon.value();
  };
  ASSERT_EQ(trainer.run(moments).outcome, RunOutcome::finished);
  EXPECT_EQ(compared, 3);
  EXPECT_GT(shares, 0.01);
}

TEST_F(CurvatureAlongTraining, CurvatureWithoutSomeParametersIsThatOfTheBlock) {
  read_watch(
      "what = \"curvature\"\n[watch.curvature]\nleave_out = [\"src_*\", \"tgt_*\"]\nfirst_products = 300\n"
      "tolerance = 1e-9\n");
  run_.train.steps = 1;
  const auto trained = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const Parameters& parameters = trained->parameters();
  HessianOptions options;
  options.label_smoothing = run_.train.label_smoothing;
  HessianOperator hessian(*trained, {examples({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}, options);
  std::vector<int64_t> kept;
  int64_t place = 0;
  for (const Parameter& parameter : parameters.all()) {
    const bool left_out = parameter.name.starts_with("src_") || parameter.name.starts_with("tgt_");
    for (int64_t i = 0; i < parameter.value.numel(); ++i, ++place) {
      if (!left_out) kept.push_back(place);
    }
  }
  const Tensor index = at::tensor(kept, at::kLong);
  const Tensor block = at::empty({index.numel(), index.numel()}, at::kDouble);
  Tensor unit = at::zeros({parameters.count()}, at::kDouble);
  for (int64_t j = 0; j < index.numel(); ++j) {
    unit[kept[static_cast<size_t>(j)]].fill_(1);
    block.select(1, j).copy_(hessian(unit).index_select(0, index));
    unit.zero_();
  }
  const auto found = result.watched.back().find<CurvatureMeasurement>();
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->hessian.found.value, largest_real(block), 1e-7);
  EXPECT_FALSE(found->preconditioned.value().parameter.ends_with("embed.weight"));
  read_watch("[watch.curvature]\nleave_out = \"source*\"\n");
  const TrainResult wrong = train(*trained, run_.train, *task_, {}, run_.watch);
  EXPECT_EQ(wrong.watched.back().watches.at("curvature").error,
            "watch.curvature.leave_out: the pattern 'source*' matches no parameter");
}

TEST_F(CurvatureAlongTraining, GradientDescentHasItsThresholdAtTheHessian) {
  run_.train.optimizer = "sgd";
  Config::from_string("[train.sgd]\nmomentum = 0.5\n", "test").read("train", run_.train);
  read_watch("what = \"curvature\"\n[watch.curvature]\nreference_products = 12\n");
  const auto trained = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const Schedule schedule = make_schedule(run_.train, run_.model.d_model);
  for (const WatchRecord& record : result.watched) {
    const auto found = record.find<CurvatureMeasurement>();
    ASSERT_TRUE(found) << to_json(record);
    EXPECT_FALSE(found->preconditioned);
    EXPECT_NEAR(found->hessian.threshold.value(), 3 / schedule(std::max<int64_t>(record.step, 1)), 1e-9);
    EXPECT_EQ(found->hessian.reference.value().products, 12);
    // One gradient for the graph, which is kept, and two for each product.
    EXPECT_EQ(found->gradients, 1 + 2 * static_cast<double>(found->hessian.found.products));
  }
}

}  // namespace
}  // namespace plumb
