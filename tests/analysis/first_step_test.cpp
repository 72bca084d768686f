// The first step of an optimizer: its direction, the logits' derivative along it, and the critical learning rate.
#include "plumb/analysis/first_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "optim/options.h"
#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/initialization.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/nn/unit_matrices.h"
#include "plumb/train/trainer.h"
#include "support/batches.h"
#include "support/paths.h"
#include "support/small_model.h"
#include "support/test_names.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

std::unique_ptr<Model> step_model(const std::string& residual, int64_t layers = 2) {
  ModelConfig config = test::small_model("encoder-decoder", layers);
  config.residual = residual;
  config.activation = "gelu";  // smooth, for differences
  config.feed_forward = 10;
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
  EXPECT_LT((sgd - gradient).abs().max().item<double>(), 1e-15 * gradient.abs().max().item<double>());
}

/// Weights and gradients for hand formulas: a matrix, three stacked ones, a vector, and a vector of zeros.
struct HandCase {
  Parameters parameters{at::kDouble};
  std::vector<Tensor> w, g;
  Tensor gradient;

  HandCase() {
    parameters.add("matrix", {4, 3}, Role::weight);
    parameters.add_stacked("stacked", {9, 3}, {3, 3, 3}, Role::stacked_qkv);
    parameters.add("gain", {5}, Role::gain);
    parameters.add("bias", {2}, Role::bias);
    parameters.allocate();
    Random random(5, "hand");
    gradient = at::empty_like(parameters.flat());
    for (int64_t i = 0; i < parameters.count(); ++i) {
      parameters.flat()[i] = i < parameters.count() - 2 ? random.normal() : 0.0;
      gradient[i] = 0.01 * random.normal();
    }
    w = copies(parameters.flat());
    g = copies(gradient);
  }

  [[nodiscard]] std::vector<Tensor> copies(const Tensor& flat) const {
    std::vector<Tensor> all;
    for (const Tensor& piece : parameters.split(flat)) all.push_back(piece.detach().clone());
    return all;
  }

  /// Applies `formula`(w, g) to the matrices, each of the stacked ones separately, and to the vectors.
  [[nodiscard]] Tensor by_tensor(const std::function<Tensor(const Tensor&, const Tensor&)>& formula) const {
    std::vector<Tensor> all;
    for (size_t i = 0; i < w.size(); ++i) {
      if (i != 1) {
        all.push_back(formula(w[i], g[i]).reshape({-1}));
        continue;
      }
      for (int64_t part = 0; part < 3; ++part)
        all.push_back(formula(w[i].narrow(0, 3 * part, 3), g[i].narrow(0, 3 * part, 3)).reshape({-1}));
    }
    return at::cat(all);
  }

  void expect(const std::string& optimizer, const std::function<Tensor(const Tensor&, const Tensor&)>& formula,
              double tolerance = 1e-9) const {
    const Tensor found = first_update(parameters, gradient, optimizer);
    const Tensor expected = by_tensor(formula);
    EXPECT_LT((found - expected).abs().max().item<double>(), tolerance * expected.abs().max().item<double>())
        << optimizer;
  }
};

double rms(const Tensor& x) { return std::sqrt(x.square().mean().item<double>()); }

TEST(FirstUpdate, DependsOnTheWeightsAsInTheOptimizersFormula) {
  const HandCase hand;
  hand.expect("lamb", [](const Tensor& w, const Tensor& g) {
    const Tensor u = g / (g.abs() + 1e-6);
    const double length = w.norm().item<double>();
    return length > 0 ? u * (length / u.norm().item<double>()) : u;
  });
  // Adafactor's first means are those of the first gradient: v_ij = Σ_j g²·Σ_i g²/Σ_ij g².
  hand.expect("adafactor", [](const Tensor& w, const Tensor& g) {
    const Tensor square = g.square();
    const Tensor v = g.dim() < 2 ? square : at::outer(square.sum(1), square.sum(0)) / square.sum();
    const Tensor u = g / v.sqrt();
    return u * (std::max(1e-3, rms(w)) / std::max(1.0, rms(u)));
  });
  // In the eigenbases of G·Gᵀ and Gᵀ·G, G = U·S·Vᵀ is diagonal, so Adam's step is U·S/(S + eps)·Vᵀ.
  hand.expect(
      "soap",
      [](const Tensor&, const Tensor& g) {
        if (g.dim() < 2) return g / (g.abs() + 1e-8);
        const auto [u, s, v] = at::linalg_svd(g, /*full_matrices=*/false);
        return at::matmul(u * (s / (s + 1e-8)), v);
      },
      1e-6);
}

TEST(FirstUpdate, OfOtherOptimizersDoesNotDependOnTheWeights) {
  const HandCase hand;
  for (const char* same : {"sgd", "nt-asgd", "radam"}) {
    hand.expect(same, [](const Tensor&, const Tensor& g) { return g; });
  }
  hand.expect("lion", [](const Tensor&, const Tensor& g) { return g.sign(); });
  hand.expect("schedule-free-adamw", [](const Tensor&, const Tensor& g) { return g / (g.abs() + 1e-8); });
}

TEST(FirstUpdate, GrowsWithMomentumWhileTheGradientStays) {
  for (const char* toml : {"[train.sgd]\nmomentum = 0.8\n", "[train.sgd]\nmomentum = 0.8\nnesterov = true\n"}) {
    const HandCase hand;
    const auto optimizer = make_optimizer("sgd", hand.parameters, test::options(toml));
    for (int i = 0; i < 200; ++i) optimizer->step(hand.g, 0.0);
    const Tensor before = hand.parameters.flat().clone();
    optimizer->step(hand.g, 1.0);
    const Tensor late = before - hand.parameters.flat();
    EXPECT_LT((late - 5 * hand.gradient).abs().max().item<double>(), 1e-12);
    EXPECT_NEAR(optimizer->beginning().momentum_gain, 5, 1e-12);
  }
  // Steps of all others, after as many as prepare the state, stay the same. RAdam's are divided by √v after a few.
  for (const std::string& name : optimizers().names()) {
    if (name == "sgd" || name == "radam") continue;
    SCOPED_TRACE(name);
    const HandCase hand;
    const Tensor first = first_update(hand.parameters, hand.gradient, name);
    const auto optimizer = make_optimizer(name, hand.parameters);
    EXPECT_EQ(optimizer->beginning().momentum_gain, 1);
    if (optimizer->averages_weights()) continue;
    for (int i = 0; i < 400; ++i) optimizer->step(hand.g, 0.0);
    const Tensor before = hand.parameters.flat().clone();
    optimizer->step(hand.g, 1.0);
    const Tensor late = before - hand.parameters.flat();
    // Muon adds 1e-7 to the norm of its average, which is a twentieth of the gradient's at first.
    const double tolerance = name == "muon" ? 1e-3 : 1e-6;
    EXPECT_LT((late - first).abs().max().item<double>(), tolerance * first.abs().max().item<double>());
  }
}

/// A run of one step on all examples at once, without dropout.
class FirstSteps : public ::testing::TestWithParam<std::string>, protected test::CopyTaskFolder {
 protected:
  FirstSteps() {
    run_.model.dropout = 0;
    run_.model.attention_bias = "none";  // the gradient of a key's bias is only rounding error
    run_.model.share_embeddings = "none";
    run_.train.optimizer = GetParam();
    run_.train.batch_tokens = 100'000;
    run_.train.schedule = "constant";
    run_.train.learning_rate = 0.05;
    run_.train.label_smoothing = 0.1;
    task_ = completed_task();
  }

  [[nodiscard]] std::unique_ptr<Model> model() const {
    std::unique_ptr<Model> made = make_model(run_.model, at::kDouble);
    made->initialize(3);
    return made;
  }

  /// All training examples.
  [[nodiscard]] std::vector<Batch> batches() const {
    const auto train = task_->dataset("train");
    std::vector<int64_t> all(train->costs().size());
    std::iota(all.begin(), all.end(), int64_t{0});
    return {train->batch(all)};
  }

  /// The parameters after training, from the model's own.
  [[nodiscard]] Tensor trained(Model& learner) const {
    train(learner, run_.train, *task_);
    return learner.parameters().flat().clone();
  }

  std::unique_ptr<Task> task_;
};

TEST_P(FirstSteps, AreWhatTheTrainerDoes) {
  for (const char* residual : {"pre-ln", "ngpt"}) {
    SCOPED_TRACE(residual);
    run_.model.residual = residual;
    const std::unique_ptr<Model> learner = model();
    const auto optimizer = make_optimizer(GetParam(), learner->parameters());
    if (std::string(residual) == "ngpt" && optimizer->averages_weights()) continue;  // refused by the trainer
    const int64_t idle = optimizer->beginning().preparatory_steps;
    // Of an optimizer that first prepares its state, let everything begin with the first step that moves matrices.
    run_.train.steps = 1 + idle;
    for (const Parameter& each : learner->parameters().all()) {
      ParameterGroup group;
      group.pattern = {each.name};
      group.frozen_until = 1 + idle;
      if (idle > 0 && each.value.dim() != 2) run_.train.groups.push_back(group);
    }
    const Tensor before = learner->parameters().flat().clone();
    const Tensor gradient = mean_loss(*learner, batches(), 0.1).gradient;
    const Tensor update = first_update(learner->parameters(), gradient, GetParam());
    EXPECT_TRUE(at::equal(learner->parameters().flat(), before));
    EXPECT_GT(update.abs().max().item<double>(), 1e-4);

    const std::unique_ptr<Model> expected = model();
    expected->parameters().flat().copy_(before - 0.05 * update);
    expected->constrain();
    const Tensor moved = (before - expected->parameters().flat()) / 0.05;
    const Tensor found = (before - trained(*learner)) / 0.05;
    // SOAP's bases are eigenvectors of squares of the gradient, which keep half of the digits of its weak directions.
    const double tolerance = GetParam() == "soap" ? 1e-3 : 1e-6;
    EXPECT_LT((found - moved).abs().max().item<double>(), tolerance * moved.abs().max().item<double>());
    run_.train.groups.clear();

    // The tangent is the limit for small rates.
    constexpr double kSmall = 1e-6;
    expected->parameters().flat().copy_(before - kSmall * update);
    expected->constrain();
    const Tensor limit = (before - expected->parameters().flat()) / kSmall;
    learner->parameters().flat().copy_(before);
    EXPECT_LT((learner->tangent(update) - limit).abs().max().item<double>(), 1e-4 * update.abs().max().item<double>());
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, FirstSteps, ::testing::ValuesIn(optimizers().names()), test::name_of_test);

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

TEST(CriticalRate, IsThatOfTheRestoredWeights) {
  const std::unique_ptr<Model> model = step_model("ngpt");
  const Tensor before = model->parameters().flat().clone();
  const Tensor gradient = mean_loss(*model, step_batches()).gradient;
  for (const char* optimizer : {"adam", "sgd"}) {
    SCOPED_TRACE(optimizer);
    const Tensor update = first_update(model->parameters(), gradient, optimizer);
    const std::optional<CriticalRate> found = critical_learning_rate(*model, step_batches(), gradient, update);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(at::equal(model->parameters().flat(), before));
    const auto loss_at = [&](double rate) {
      const std::unique_ptr<Model> stepped = step_model("ngpt");
      stepped->parameters().flat().copy_(before - rate * update);
      normalize_matrices(stepped->parameters());
      return mean_loss(*stepped, step_batches()).loss;
    };
    EXPECT_LE(loss_at(found->low), loss_at(0));
    EXPECT_GT(loss_at(found->high), loss_at(0));
    const FirstStep measured = measure_first_step(*model, step_batches(), optimizer, {}, 0);
    EXPECT_NEAR(measured.critical->rate(), found->rate(), 1e-9 * found->rate());
    const double derivative = change_by_difference(*model, model->tangent(update));
    EXPECT_NEAR(measured.logits.total, derivative, 1e-6 * derivative);
  }
}

}  // namespace
}  // namespace plumb
