#include "plumb/check/trials.h"

#include <cmath>
#include <utility>

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/progress.h"
#include "plumb/base/timing.h"
#include "plumb/check/gradient.h"
#include "plumb/check/thresholds.h"
#include "plumb/task/baseline.h"
#include "plumb/train/trainer.h"

namespace plumb::check {
namespace {

constexpr int64_t kProbe = 64;  // examples
constexpr int64_t kCountedLabels = int64_t{1} << 20;

/// The run's settings at a constant rate after a warm-up, without anything that only a long run needs.
TrainConfig settings_of(const TrainConfig& run, const TrialPlan& plan, int64_t first, int64_t steps) {
  TrainConfig config = run;
  config.learning_rate = plan.learning_rate;
  config.schedule = "constant * linear_warmup";
  config.warm_up = plan.warm_up;
  config.decay_start = 0;
  config.seed = plan.seed;
  config.steps = first + steps + 1;  // never complete: no validation at the end
  config.epochs = 0;
  config.log_every = kLargestCount;
  config.validate_every = kLargestCount;
  config.score_every = -1;
  config.checkpoint_every = kLargestCount;
  config.keep_every = 0;
  config.keep_best = 1;
  config.patience = 0;
  config.best_metric = "valid_nll";
  config.trouble = {};
  return config;
}

/// Looks at a trial after each step, and then asks whether it has told enough.
class TrialObserver final : public TrainObserver {
 public:
  TrialObserver(std::function<void()> look, std::function<bool()> enough)
      : look_(std::move(look)), enough_(std::move(enough)) {}
  void on_step(const Trainer&, const TrainStatus&) override { look_(); }
  bool stops() override { return enough_(); }

 private:
  std::function<void()> look_;
  std::function<bool()> enough_;
};

}  // namespace

Trials::Trials(const Subject& subject, std::function<bool()> stop)
    : subject_(subject), stop_(std::move(stop)), model_(make_model(subject.config.model)) {
  const auto train = subject.task->dataset("train");
  probe_ = evaluation_batches(*train, subject.config.train.batch_tokens, kProbe);
  baselines_.frequencies =
      label_baseline(*train, model_->outputs(), kCountedLabels).nll_on(probe_, subject.config.train.label_smoothing);
  baselines_.uniform = std::log(static_cast<double>(model_->outputs()));
}
Trials::~Trials() = default;

Trial Trials::run(const TrialPlan& plan, int64_t steps) {
  const Stopwatch watch;
  const ListenToProgress silent([](double) {});
  set_first_weights(subject_, *model_, static_cast<uint64_t>(plan.seed));
  const int64_t first = subject_.first_step;
  Trainer trainer(*model_, settings_of(subject_.config.train, plan, first, steps), *subject_.task);
  if (!subject_.checkpoint.empty()) trainer.load(subject_.checkpoint);

  Trial trial{.learning_rate = plan.learning_rate, .warm_up = plan.warm_up, .seed = plan.seed};
  Judged judged;
  const auto measure = [&](int64_t step, bool diverged) {
    trial.steps.push_back(step);
    trial.losses.push_back(loss_of_batches(*model_, probe_, {.label_smoothing = 0, .loss = loss_of(*subject_.task)}));
    if (step == 0) baselines_.first = trial.losses.front();
    judged = judge_losses(trial.steps, trial.losses, plan.warm_up, baselines_, diverged);
  };
  measure(0, false);
  const bool brief = steps - plan.warm_up <= kBriefTrial;
  const auto taken = [&] { return trainer.step() - first; };
  TrialObserver observer(
      [&] {
        if (taken() % kStepsBetweenLosses == 0) measure(taken(), false);
      },
      [&] { return (judged.clear && brief) || taken() >= steps || (stop_ && stop_()); });
  const TrainResult result = trainer.run({&observer}, {.dry_pass = !std::exchange(tried_, true)});
  const bool diverged = result.outcome == RunOutcome::diverged;
  if (diverged) measure(taken(), true);
  const bool cut = taken() < steps && !diverged;
  if (cut && judged.outcome != TrialOutcome::trains)
    judged = {TrialOutcome::unknown, false, false, "ended before it could be told"};
  trial.on_plateau = judged.on_plateau && !cut;
  if (trial.on_plateau) {
    const double smoothing = subject_.config.train.label_smoothing;
    const Tensor gradient = mean_loss(*model_, probe_, smoothing, loss_of(*subject_.task)).gradient;
    trial.gradient_at_input = gradient_at_input(model_->parameters(), model_->parameters().split(gradient));
    if (trial.gradient_at_input) judged = judge_plateau(std::move(judged), *trial.gradient_at_input);
  }
  trial.outcome = judged.outcome;
  trial.because = judged.because;
  trial.steps_taken = taken();
  trial.seconds = watch.seconds();
  return trial;
}

}  // namespace plumb::check
