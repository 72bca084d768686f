// The first step of an optimizer: its direction, the logits' derivative along it, and the critical learning rate.
#include "plumb/analysis/first_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/error.h"
#include "support/batches.h"

namespace plumb {
namespace {

std::unique_ptr<Model> step_model(const std::string& residual, int64_t layers = 2) {
  ModelConfig config;
  config.residual = residual;
  config.activation = "gelu";  // smooth, for differences
  config.d_model = 8;
  config.feed_forward = 10;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = layers;
  config.source_vocabulary = config.target_vocabulary = 11;
  std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(7);
  return model;
}

std::vector<Batch> step_batches() {
  std::vector<Batch> batches(2);
  append(batches[0], std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9}, 0);
  append(batches[1], std::vector<int32_t>{9, 10}, std::vector<int32_t>{4, 6, 5}, 1);
  return batches;
}

TEST(FirstUpdate, IsTheOptimizersStepPerUnitOfLearningRate) {
  const std::unique_ptr<Model> model = step_model("pre-ln");
  const Tensor before = model->parameters().flat().clone();
  const Tensor gradient = mean_loss(*model, step_batches()).gradient;
  const Tensor adam = first_update(model->parameters(), gradient, "adam");
  const Tensor sgd = first_update(model->parameters(), gradient, "sgd");
  EXPECT_TRUE(at::equal(model->parameters().flat(), before));
  EXPECT_LT((adam - gradient / (gradient.abs() + 1e-9)).abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(at::equal(sgd, gradient));
}

/// The root mean square of the logits' derivative along `direction`, without its mean over classes, by a fourth-order
/// central difference.
double change_by_difference(Model& model, const Tensor& direction) {
  const at::NoGradGuard no_graph;
  const Tensor& flat = model.parameters().flat();
  const Tensor start = flat.clone();
  double sum = 0;
  double count = 0;
  for (const Batch& batch : step_batches()) {
    const auto logits_at = [&](double rate) {
      flat.copy_(start + rate * direction);
      ForwardContext context(Pass::measurement);
      return model.logits(model.states(batch, context));
    };
    constexpr double kStep = 1e-5;
    const Tensor derivative =
        (8 * (logits_at(kStep) - logits_at(-kStep)) - (logits_at(2 * kStep) - logits_at(-2 * kStep))) / (12 * kStep);
    sum += derivative.var(1, /*unbiased=*/false).sum().item<double>();
    count += static_cast<double>(derivative.size(0));
  }
  flat.copy_(start);
  return std::sqrt(sum / count);
}

TEST(LogitChanges, AreTheDerivativeAlongEachLayersUpdate) {
  for (const std::string residual : {"post-ln", "pre-ln"}) {
    const std::unique_ptr<Model> model = step_model(residual);
    const Parameters& parameters = model->parameters();
    const Tensor update = first_update(parameters, mean_loss(*model, step_batches()).gradient, "adam");
    const LogitChanges found = measure_logit_changes(*model, step_batches(), update);
    ASSERT_EQ(found.by_layer.size(), 5U);
    EXPECT_FALSE(found.by_layer[4].layer.has_value());
    for (const LogitChange& layer : found.by_layer) {
      const Tensor some = at::zeros_like(update);
      const std::vector<Tensor> to = parameters.split(some);
      const std::vector<Tensor> from = parameters.split(update);
      for (size_t i = 0; i < from.size(); ++i) {
        const std::string& name = parameters.all()[i].name;
        const bool inside =
            layer.layer ? name.starts_with(to_string(*layer.layer) + ".") : name.find(".layers.") == std::string::npos;
        if (inside) Tensor(to[i]).copy_(from[i]);
      }
      const double expected = change_by_difference(*model, some);
      EXPECT_NEAR(layer.change, expected, 1e-7 * expected) << residual;
      EXPECT_GT(expected, 0.01);
    }
    const double expected = change_by_difference(*model, update);
    EXPECT_NEAR(found.total, expected, 1e-7 * expected) << residual;
  }
}

TEST(LogitChanges, SummaryIsAGeometricMean) {
  const LogitChanges one{{{LayerId{StackKind::encoder, 0}, 2}, {std::nullopt, 8}}, 3};
  const LogitChanges other{{{LayerId{StackKind::encoder, 0}, 8}, {std::nullopt, 2}}, 27};
  const LogitChangesReport report = summarize({one, other});
  EXPECT_NEAR(report.by_layer[0].change.mean, 4, 1e-12);
  EXPECT_NEAR(report.total.mean, 9, 1e-12);
  EXPECT_EQ(report.total.count, 2);
  EXPECT_THROW(summarize(std::vector<LogitChanges>{}), Error);
}

/// A loss that depends on the parameters w alone: a·Σw² + b·Σw.
LossFunction quadratic(double a, double b) {
  return [a, b](Model& model, const Batch& batch, const LossOptions& options, ForwardContext&) {
    Tensor sum = at::zeros({}, at::kDouble);
    for (const Tensor& value : model.parameters().values()) sum = sum + a * value.square().sum() + b * value.sum();
    return Loss{options.scale.value() * batch.weight() * sum, 0.0, std::ssize(batch.labels), batch.weight()};
  };
}

TEST(CriticalRate, OfAQuadraticLossIsTwiceTheMinimum) {
  const std::unique_ptr<Model> model = step_model("pre-ln", 1);
  const Tensor before = model->parameters().flat().clone();
  CriticalRateOptions options;
  options.loss = quadratic(0.25, 0.1);
  const Tensor gradient = 0.5 * before + 0.1;
  for (const double scale : {1e-4, 1.0, 300.0}) {
    const Tensor update = scale * gradient;  // H = I/2: the loss returns to its start value at η = 4/scale
    const std::optional<CriticalRate> found = critical_learning_rate(*model, step_batches(), gradient, update, options);
    ASSERT_TRUE(found.has_value()) << scale;
    EXPECT_LE(found->low, 4 / scale);
    EXPECT_GE(found->high, 4 / scale);
    EXPECT_LE(found->high / found->low, 1.05);
    EXPECT_LE(found->passes, 10) << scale;
    EXPECT_NEAR(found->sharpness(), scale / 2, 0.03 * scale / 2);
  }
  EXPECT_TRUE(at::equal(model->parameters().flat(), before));
  EXPECT_FALSE(critical_learning_rate(*model, step_batches(), gradient, -gradient, options).has_value());
  options.loss = quadratic(0, 0.1);  // falls forever
  EXPECT_FALSE(critical_learning_rate(*model, step_batches(), at::full_like(before, 0.1), gradient.abs(), options));
}

TEST(CriticalRate, OfAModelIsWhereAFineScanSeesTheLossRise) {
  for (const std::string optimizer : {"adam", "sgd"}) {
    const std::unique_ptr<Model> model = step_model("post-ln");
    const Tensor gradient = mean_loss(*model, step_batches(), 0.1).gradient;
    const Tensor update = first_update(model->parameters(), gradient, optimizer);
    CriticalRateOptions options;
    options.label_smoothing = 0.1;
    const std::optional<CriticalRate> found = critical_learning_rate(*model, step_batches(), gradient, update, options);
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->passes, 12) << optimizer;
    const Tensor& flat = model->parameters().flat();
    const Tensor start = flat.clone();
    const auto loss_at = [&](double rate) {
      {
        const at::NoGradGuard no_graph;
        flat.copy_(start - rate * update);
      }
      return mean_loss(*model, step_batches(), 0.1).loss;
    };
    const double here = loss_at(0);
    for (int i = 1; i <= 20; ++i) EXPECT_LE(loss_at(found->low * i / 20), here) << optimizer << i;
    EXPECT_GT(loss_at(found->high), here) << optimizer;
  }
}

}  // namespace
}  // namespace plumb
