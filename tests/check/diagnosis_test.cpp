// Diagnoses of a diverged run compared with arithmetic on its measurements and with a scan of the loss.
#include "plumb/train/diagnosis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "plumb/analysis/watch/activations.h"
#include "plumb/analysis/watch/curvature.h"
#include "plumb/analysis/watch/updates.h"
#include "plumb/train/alarm.h"
#include "plumb/train/trainer.h"
#include "support/contains.h"
#include "support/paths.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

class DiagnosisOfARun : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  DiagnosisOfARun() {
    run_.model.encoder_layers = 2;
    run_.train.optimizer = "sgd";
    Config::from_string("[train.sgd]\nmomentum = 0\n", "test").read("train", run_.train);
    task_ = completed_task();
    model_ = make_model(run_.model, at::kDouble);
    model_->initialize(1);
    train_ = task_->dataset("train");
    batches_ = evaluation_batches(*train_, 200, 40);
    optimizer_ = make_optimizer("sgd", model_->parameters(), run_.train.options);
    for (const Tensor& value : model_->parameters().values()) gradients_.push_back(at::zeros_like(value.detach()));
  }

  /// The text of this diagnosis, with its advice after "→", for a run at this learning rate.
  [[nodiscard]] std::string said(const std::string& name, double rate = 0.5) const {
    const std::vector<ParameterStep> steps(gradients_.size(), {.learning_rate = rate});
    const WatchedRun run{*model_, *task_, run_.train, *optimizer_, *train_, batches_, 412, rate, steps};
    const StepNumbers numbers{413, 1, 1, rate};
    const StepJudgment judgment;
    const TroubleJudge judge({}, {}, 0, 0);
    const DivergedRun diverged{run, numbers, judgment, gradients_, judge, watched_, finite_on(run)};
    std::string all;
    for (const Finding& finding : alarms().at(name).make.explain(diverged))
      all += finding.text + "→" + finding.advice + "\n";
    return all;
  }

  /// The mean loss per label over the batches.
  [[nodiscard]] double loss() const {
    const at::NoGradGuard no_graph;
    double sum = 0, weight = 0;
    for (const Batch& batch : batches_) {
      ForwardContext context;
      sum += task_->loss(*model_, batch, {run_.train.label_smoothing, 1.0, false}, context).value.item<double>();
      weight += batch.weight();
    }
    return sum / weight;
  }

  std::unique_ptr<Task> task_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Dataset> train_;
  std::vector<Batch> batches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> gradients_;
  std::vector<WatchRecord> watched_;
};

TEST_F(DiagnosisOfARun, HoldsTheLastWatchesCurvatureAgainstTheThreshold) {
  // η was 0.01: 2/η = 200, and 610·0.01 = 6.1.
  CurvatureMeasurement found;
  found.hessian.found.value = 610;
  found.hessian.threshold = 200;
  found.hessian.parameter = "tgt_embed.weight";
  found.hessian.share = 0.5;
  watched_.push_back({400, {{"curvature", {.values = described_json(found)}}}});
  watched_.push_back({410, {{"updates", {.values = described_json(UpdateMeasurement{{}, 1.0})}}}});
  std::string text = said("curvature");
  EXPECT_TRUE(text.starts_with("λ_max(H)·η was 6.1 at the last watch, step 400, above 2, ")) << text;
  EXPECT_CONTAINS(text, "50% of that direction is tgt_embed.weight→a learning rate below 0.0033 ");
  found.hessian.found.value = 100;
  watched_[0].watches["curvature"].values = described_json(found);
  text = said("curvature");
  EXPECT_TRUE(text.starts_with("λ_max(H)·η was 1 at the last watch, step 400, below 2, ")) << text;
  EXPECT_CONTAINS(text, "→\n");  // not a reason, so no advice
}

TEST_F(DiagnosisOfARun, MeasuresTheCurvatureWhereNoWatchHas) {
  const std::string text = said("curvature");
  EXPECT_CONTAINS(text, " at the end, ");
  model_->parameters().flat().detach()[0] = NAN;
  EXPECT_EQ(said("curvature"), "");
  EXPECT_EQ(said("critical_rate"), "");
  EXPECT_EQ(said("attention"), "");
}

TEST_F(DiagnosisOfARun, TheCriticalRateIsWhereAStepBeginsToRaiseTheLoss) {
  const std::string text = said("critical_rate", 50);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match,
                                std::regex("above a learning rate of ([-0-9.e+]+); that of the run was "
                                           "([0-9.]+), ([-0-9.e+]+) times")))
      << text;
  const double critical = std::stod(match[1]);
  EXPECT_EQ(std::stod(match[2]), 50);
  EXPECT_NEAR(std::stod(match[3]), 50 / critical, 0.01 * 50 / critical);
  double weight = 0;
  for (const Batch& batch : batches_) weight += batch.weight();
  const Tensor flat = model_->parameters().flat().detach();
  const Tensor before = flat.clone();
  Tensor gradient = at::zeros_like(flat);
  for (const Batch& batch : batches_) {
    ForwardContext context;
    const Loss found = task_->loss(*model_, batch, {run_.train.label_smoothing, 1 / weight, false}, context);
    gradient += joined(plumb::gradients({found.value}, model_->parameters().values(), {}));
  }
  const double here = loss();
  flat.copy_(before - gradient * (0.9 * critical));
  EXPECT_LT(loss(), here);
  flat.copy_(before - gradient * (1.1 * critical));
  EXPECT_GT(loss(), here);
}

TEST_F(DiagnosisOfARun, NamesTheAttentionWithTheLargestLogit) {
  EXPECT_CONTAINS(said("attention"), "→\n");
  ActivationMeasurement found;
  found.largest_logit = {{"decoder.layers.0.self_attention", 3.5}};
  watched_.push_back({400, {{"activations", {.values = described_json(found)}}}});
  model_->parameters().at("decoder.layers.0.self_attn.in_proj_weight").value.detach().mul_(100);
  const std::string text = said("attention");
  EXPECT_CONTAINS(text, " (decoder.layers.0.self_attention), and the lowest");
  EXPECT_CONTAINS(text, "; at step 400 that logit was 3.5→model.qk_norm");
}

TEST_F(DiagnosisOfARun, ComparesTheGradientsOfTheFirstAndTheLastLayer) {
  const std::vector<Parameter>& all = model_->parameters().all();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == "encoder.layers.0.linear1.bias") gradients_[i][0] = 3;
    if (all[i].name == "encoder.layers.0.norm1.weight") gradients_[i][1] = 4;
    if (all[i].name == "encoder.layers.1.linear2.bias") gradients_[i][2] = 7;
  }
  EXPECT_EQ(said("gradient_at_input"), "the gradient's norm was 5 in encoder.layers.0 and 7 in encoder.layers.1→\n");
}

TEST_F(DiagnosisOfARun, StandsInTheResult) {
  run_.train.learning_rate = 300;
  run_.train.schedule = "constant";
  run_.train.steps = 200;
  run_.train.trouble.window = 8;
  const TrainResult result = train(*model_, run_.train, *task_);
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  ASSERT_FALSE(result.diagnosis.empty());
  EXPECT_EQ(result.to_json()["diagnosis"], Json(result.diagnosis));
  EXPECT_EQ(TrainResult::from_json(result.to_json()).diagnosis, result.diagnosis);
}

}  // namespace
}  // namespace plumb
