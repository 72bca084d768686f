// Training in memory: the model learns, and the reports are correct.
#include "plumb/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/data/batches.h"
#include "plumb/model/encoder_decoder.h"

namespace plumb {
namespace {

class Training : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  Training() : task_(completed_task()), train_(task_->dataset("train")) {}

  /// The mean negative log-likelihood of the validation split.
  double valid_nll(Model& model) const {
    return *task_->metrics(evaluate(*task_, model, *task_->dataset("valid"), 64, 0, {})).get("nll");
  }

  EncoderDecoder model(at::ScalarType type = at::kFloat) const {
    EncoderDecoder model(run_.model, type);
    model.initialize(1);
    return model;
  }

  std::unique_ptr<Task> task_;
  std::unique_ptr<Dataset> train_;
};

TEST_F(Training, LearnsToCopy) {
  run_.train.steps = 200;
  run_.train.validate_every = 100;
  run_.train.schedule = "constant * linear_warmup";
  run_.model.dropout = 0;
  EncoderDecoder learner = model();
  const double before = valid_nll(learner);
  const TrainResult result = train(learner, run_.train, *task_);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_GT(before, 2.0);  // near ln(vocabulary)
  EXPECT_LT(*result.valid_nll(), 0.7);
  EXPECT_LT(result.history.back().nll, 0.7);
  EXPECT_LT(result.best->value, before);
  EXPECT_EQ(result.steps, 200);
}

TEST_F(Training, KeepsTheUnitVectorsOfTheNormalizedTransformer) {
  run_.model.residual = "ngpt";
  run_.model.share_embeddings = "none";
  Config::from_string("[[train.groups]]\npattern = \"tgt_embed.weight\"\nfrozen_until = 100\n", "test")
      .read("train", run_.train);
  EncoderDecoder learner = model(at::kDouble);
  const Tensor table = learner.parameters().at("tgt_embed.weight").value.detach().mul_(2);  // frozen: stays as it is
  const Tensor before = table.clone();
  train(learner, run_.train, *task_);
  for (const Parameter& parameter : learner.parameters().all()) {
    if (parameter.value.dim() != 2 || parameter.role == Role::constant || parameter.name == "tgt_embed.weight")
      continue;
    const bool writes = parameter.name.ends_with("out_proj.weight") || parameter.name.ends_with("linear2.weight");
    const Tensor lengths = parameter.value.detach().square().sum(writes ? 0 : 1).sqrt();
    EXPECT_LT((lengths - 1).abs().max().item<double>(), 1e-14) << parameter.name;
  }
  EXPECT_TRUE(table.equal(before));
}

TEST_F(Training, TheFirstStepsAreThoseOfTheFormula) {
  // Two steps of SGD without momentum in float64: w − lr·∇ of the mean smoothed loss of the first batches.
  run_.model.dropout = 0;
  run_.train.optimizer = "sgd";
  Config::from_string("[train.sgd]\nmomentum = 0\n", "test").read("train", run_.train);
  run_.train.schedule = "constant";
  run_.train.learning_rate = 0.05;
  run_.train.steps = 2;
  run_.train.log_every = 2;
  run_.train.clip_norm = 0.5;
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, *task_);
  const auto plan = plan_batches(train_->costs(), run_.train.batch_tokens, 1, 0);
  double loss_sum = 0, nll_sum = 0, norm = 0;
  double weight = 0;
  for (size_t b = 0; b < 2; ++b) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(plan[b]), {0.1, std::nullopt, false}, context);
    if (b == 1) {  // the first step has its own point
      loss_sum += loss.value.item<double>() * loss.weight;
      nll_sum += loss.nll;
      weight += loss.weight;
    }
    const Tensor gradient = joined(gradients({loss.value}, expected.parameters().values(), {}));
    norm = gradient.norm().item<double>();
    expected.parameters().flat().sub_(gradient * (0.05 * std::min(1.0, 0.5 / norm)));
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  const TrainPoint& point = result.history.back();
  EXPECT_EQ(point.step, 2);
  EXPECT_NEAR(point.loss, loss_sum / weight, 1e-12);
  EXPECT_NEAR(point.nll, nll_sum / weight, 1e-12);
  EXPECT_NEAR(point.gradient_norm.value(), norm, 1e-10);
  EXPECT_EQ(point.learning_rate, 0.05);
}

TEST_F(Training, ClipsByValueThenByBlockThenByNorm) {
  // Two steps of cautious SGD without momentum, which is SGD except that steps are divided by the share of elements
  // with a gradient. Without attention biases, because the gradient of a key's bias is only rounding error.
  run_.model.dropout = 0;
  run_.model.attention_bias = "none";
  Config::from_string(R"([train]
optimizer = "sgd"
cautious = true
schedule = "constant"
learning_rate = 0.05
steps = 2
log_every = 2
clip_value = 0.01
clip_block = 0.003
clip_norm = 0.02
[train.sgd]
momentum = 0.0
)",
                      "test")
      .read("train", run_.train);
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, *task_);
  const auto plan = plan_batches(train_->costs(), run_.train.batch_tokens, 1, 0);
  double norm = 0;
  for (size_t b = 0; b < 2; ++b) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(plan[b]), {0.1, std::nullopt, false}, context);
    std::vector<Tensor> gradient = gradients({loss.value}, expected.parameters().values(), {});
    norm = joined(gradient).norm().item<double>();
    bool value_limited = false, block_limited = false;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const Tensor w = expected.parameters().values()[i].detach();
      value_limited = value_limited || gradient[i].abs().max().item<double>() > 0.01;
      gradient[i] = gradient[i].clamp(-0.01, 0.01);
      const Tensor rows = gradient[i].view({w.dim() == 2 ? w.size(0) : 1, -1});
      const Tensor weights = w.view(rows.sizes());
      for (int64_t row = 0; row < rows.size(0); ++row) {
        const double length = rows[row].norm().item<double>();
        const double largest = 0.003 * std::max(weights[row].norm().item<double>(), 1e-3);
        block_limited = block_limited || length > largest;
        if (length > largest) rows[row].mul_(largest / length);
      }
    }
    EXPECT_TRUE(value_limited && block_limited);
    const double scale = std::min(1.0, 0.02 / joined(gradient).norm().item<double>());
    EXPECT_LT(scale, 1);
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double share = gradient[i].ne(0).to(at::kDouble).mean().item<double>();
      if (share > 0) expected.parameters().values()[i].detach().sub_(gradient[i], 0.05 * scale / std::max(share, 1e-3));
    }
  }
  for (size_t i = 0; i < trained.parameters().all().size(); ++i) {
    const Tensor difference = trained.parameters().values()[i] - expected.parameters().values()[i];
    EXPECT_LT(difference.abs().max().item<double>(), 1e-12) << trained.parameters().all()[i].name;
  }
  EXPECT_NEAR(result.history.back().gradient_norm.value(), norm, 1e-10);  // before clipping
}

TEST_F(Training, GroupsHaveRatesDecayAndFreezingOfTheirOwn) {
  // Three steps of SGD without momentum in float64, parameter by parameter.
  run_.model.dropout = 0;
  run_.train = TrainConfig();
  Config::from_string(R"([train]
optimizer = "sgd"
schedule = "constant"
learning_rate = 0.05
weight_decay = 0.1
clip_norm = 0.5
batch_tokens = 64
steps = 3
[task.translation]
beam = 0
[train.sgd]
momentum = 0.0
[[train.groups]]
pattern = "src_embed.weight"
frozen_until = -1
[[train.groups]]
pattern = ["decoder.*.bias", "decoder.*norm*"]
learning_rate_factor = 3.0
weight_decay = 0.2
[[train.groups]]
pattern = "encoder.*"
learning_rate_factor = 0.5
frozen_until = 3
)",
                      "test")
      .read("train", run_.train);
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, *task_);
  const auto plan = plan_batches(train_->costs(), run_.train.batch_tokens, 1, 0);
  double norm = 0;
  for (size_t step = 1; step <= 3; ++step) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(plan[step - 1]), {0.1, std::nullopt, false}, context);
    const auto gradient = gradients({loss.value}, expected.parameters().values(), {});
    const auto& all = expected.parameters().all();
    const auto frozen = [&](const std::string& name) {
      return name == "src_embed.weight" || (name.starts_with("encoder.") && step < 3);
    };
    norm = 0;
    for (size_t i = 0; i < all.size(); ++i) norm += frozen(all[i].name) ? 0 : gradient[i].square().sum().item<double>();
    norm = std::sqrt(norm);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string& name = all[i].name;
      if (frozen(name)) continue;
      const bool in_group = name.starts_with("decoder.") && (name.ends_with(".bias") || name.find("norm") != name.npos);
      const double rate = 0.05 * (in_group ? 3 : name.starts_with("encoder.") ? 0.5 : 1);
      const double decay = in_group ? 0.2 : all[i].value.dim() == 2 ? 0.1 : 0;
      const Tensor w = all[i].value.detach();
      w.sub_(rate * (gradient[i] * std::min(1.0, 0.5 / norm) + decay * w));
    }
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  EXPECT_NEAR(result.history.back().gradient_norm.value(), norm, 1e-10);
  EXPECT_EQ(result.history.back().learning_rate, 0.05);
}

TEST_F(Training, EndsAfterItsEpochs) {
  run_.train.steps = 100000;
  run_.train.epochs = 2;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, *task_);
  const auto batches = [&](int64_t epoch) {
    return static_cast<int64_t>(plan_batches(train_->costs(), 64, 1, epoch).size());
  };
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_EQ(result.steps, batches(0) + batches(1));
  EXPECT_TRUE(result.history.back().metrics.get("valid_nll").has_value());
}

TEST_F(Training, PatienceEndsIt) {
  run_.train.steps = 1000;
  run_.train.learning_rate = 0;  // nothing improves
  run_.train.validate_every = 2;
  run_.train.patience = 3;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, *task_);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_EQ(result.best_step(), 2);
  EXPECT_EQ(result.steps, 8);
}

/// A task with a slow metric.
class Scored final : public Task {
 public:
  explicit Scored(const Task& inner) : Task(inner.data()), inner_(inner) {}
  [[nodiscard]] std::string name() const override { return "scored"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return inner_.dataset(split);
  }
  [[nodiscard]] std::string model_kind() const override { return inner_.model_kind(); }
  void complete(ModelConfig& config) const override { inner_.complete(config); }
  [[nodiscard]] Metrics score(Model&, const std::string& split) const override {
    Metrics metrics;
    metrics.set("length", static_cast<double>(split.size()));
    return metrics;
  }

 private:
  const Task& inner_;
};

TEST_F(Training, SlowMetricsAreAskedForWhenDue) {
  run_.train.score_every = 6;
  std::vector<int64_t> asked;
  test::Moments moments;
  moments.point = [&](const TrainPoint& point) {
    if (point.metrics.get("length")) asked.push_back(point.step);
  };
  EncoderDecoder learner = model();
  const Scored task(*task_);
  EXPECT_EQ(train(learner, run_.train, task, moments).metrics.get("length"), 5);  // characters in "valid"
  EXPECT_EQ(asked, (std::vector<int64_t>{6, 12, 18, 20}));
}

TEST_F(Training, ThePeakRateIsMeasuredOnlyIfThereAreSteps) {
  EncoderDecoder learner = model();
  Trainer trainer(learner, run_.train, *task_);
  int64_t asked = 0;
  const TrainOptions options{.peak_rate = [&asked] {
    ++asked;
    return 1e9;
  }};
  EXPECT_EQ(trainer.run({}, options).outcome, RunOutcome::finished);
  EXPECT_EQ(trainer.run({}, options).outcome, RunOutcome::finished);  // nothing is left
  EXPECT_EQ(asked, 1);
}

TEST_F(Training, ObserversAreToldInTheirOrder) {
  class Notes final : public TrainObserver {
   public:
    Notes(char name, std::string& all) : name_(name), all_(all) {}
    void on_begin(const Trainer&) override { note("begin"); }
    void on_step(const Trainer& trainer, const TrainStatus&) override { note(std::to_string(trainer.step())); }
    void on_point(const TrainPoint&) override { note("point"); }
    void on_end(const Trainer&) override { note("end"); }

   private:
    void note(const std::string& moment) { all_ += name_ + (" " + moment + "; "); }
    char name_;
    std::string& all_;
  };
  run_.train.steps = 2;
  run_.train.log_every = 1;
  EncoderDecoder learner = model();
  std::string all;
  Notes first('a', all), second('b', all);
  EXPECT_EQ(train(learner, run_.train, *task_, {&first, &second}).outcome, RunOutcome::finished);
  EXPECT_EQ(all, "a begin; b begin; a 1; b 1; a point; b point; a 2; b 2; a point; b point; a end; b end; ");
}

TEST_F(Training, DivergesWhereNothingIsFinite) {
  EncoderDecoder broken = model();
  broken.parameters().flat().fill_(NAN);
  const TrainResult result = train(broken, run_.train, *task_);
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.learning->learning, Learning::diverged);
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(result.to_json()["history"][0]["loss"].is_null());
}

TEST_F(Training, ARunThatLearnsNothingHasFailedThoughItsLossIsFinite) {
  run_.train.steps = 200;
  run_.train.schedule = "constant * linear_warmup";
  run_.train.divergence_factor = 0;
  run_.train.validate_every = 1000;
  run_.model.dropout = 0;
  EncoderDecoder learner = model();
  const TrainResult sane = train(learner, run_.train, *task_);
  ASSERT_TRUE(sane.learning);
  EXPECT_EQ(sane.learning->learning, Learning::learned) << sane.learning->text;
  EXPECT_FALSE(sane.failed());
  EXPECT_EQ(sane.learning->start, sane.history.front().nll);
  std::map<int64_t, double> counts;
  double sum = 0, entropy = 0;
  for (int64_t i = 0; i < train_->size(); ++i) {
    for (const int64_t label : train_->batch(std::vector<int64_t>{i}).labels) counts[label] += 1;
  }
  for (const auto& [label, count] : counts) sum += count;
  for (const auto& [label, count] : counts) entropy -= count / sum * std::log(count / sum);
  EXPECT_NEAR(sane.learning->frequencies, entropy, 1e-12);
  EXPECT_NEAR(sane.learning->uniform, std::log(static_cast<double>(run_.model.target_vocabulary)), 1e-12);

  run_.train.learning_rate = 0.5;
  EncoderDecoder loser = model();
  const TrainResult absurd = train(loser, run_.train, *task_);
  EXPECT_EQ(absurd.outcome, RunOutcome::finished);
  EXPECT_TRUE(absurd.failed()) << absurd.learning->text;
  EXPECT_EQ(absurd.to_json()["learning"]["failed"], true);
}

TEST_F(Training, OnlyARunThatHasEndedIsJudged) {
  EncoderDecoder stopped = model();
  test::Moments moments;
  moments.stop = [] { return true; };
  const TrainResult result = train(stopped, run_.train, *task_, moments);
  EXPECT_EQ(result.outcome, RunOutcome::stopped);
  EXPECT_FALSE(result.learning);
  EXPECT_FALSE(result.to_json().contains("learning"));
}

TEST_F(Training, TheLossOfASplitDoesNotDependOnTheBatches) {
  EncoderDecoder any = model(at::kDouble);
  const Sums whole = evaluate(*task_, any, *task_->dataset("valid"), 100000, 0.1, {});
  const Sums parts = evaluate(*task_, any, *task_->dataset("valid"), 20, 0.1, {});
  const Split& valid = task_->data().split("valid");
  EXPECT_EQ(whole.weight, static_cast<double>(valid.target_tokens() + valid.size()));
  EXPECT_EQ(parts.weight, whole.weight);
  EXPECT_NEAR(parts.nll / parts.weight, whole.nll / whole.weight, 1e-12);
  EXPECT_NEAR(parts.loss / parts.weight, whole.loss / whole.weight, 1e-12);
}

TEST_F(Training, ResultsSurviveTheirJson) {
  TrainResult result{.outcome = RunOutcome::diverged, .steps = 7, .seconds = 3.5};
  result.best = {"valid_nll", 1.25, 5};
  result.learning = judge_learning({.steps = {1, 7}, .losses = {2.0, 1.0}, .frequencies = 1.5, .uniform = 2.0});
  TrainPoint point{7, 1, 1e-3, NAN, 2.0, INFINITY, 100, {}, {}, {}};
  point.metrics.set("valid_nll", 1.5);
  point.metrics.set("accuracy", 0.25);
  result.history.push_back(point);
  result.metrics = last_metrics(result.history);
  const Json json = result.to_json();
  const TrainResult read = TrainResult::from_json(Json::parse(json.dump()));
  EXPECT_EQ(read.to_json(), json);
  EXPECT_TRUE(std::isnan(read.history[0].loss));
  EXPECT_EQ(read.history[0].metrics.get("accuracy"), 0.25);
  EXPECT_FALSE(read.metrics.get("bleu").has_value());
}

TEST_F(Training, RejectsAModelTooSmallForTheData) {
  run_.model.target_vocabulary = 5;
  EncoderDecoder small(run_.model);
  EXPECT_THROW(Trainer(small, run_.train, *task_), Error);
}

}  // namespace
}  // namespace plumb
