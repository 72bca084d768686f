#include "plumb/check/trials.h"

#include <cmath>
#include <utility>

#include "plumb/analysis/critical_rate.h"
#include "plumb/base/progress.h"
#include "plumb/base/timing.h"
#include "plumb/check/gradient.h"
#include "plumb/task/baseline.h"
#include "plumb/train/trainer.h"

namespace plumb::check {
namespace {

constexpr int64_t kProbe = 64;  // examples
constexpr int64_t kEvery = 10;  // steps between two losses
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

/// Ends a trial when a condition, asked after each step, is met.
class StopsWhen final : public TrainObserver {
 public:
  explicit StopsWhen(std::function<bool()> condition) : condition_(std::move(condition)) {}
  bool stops() override { return condition_(); }

 private:
  std::function<bool()> condition_;
};

}  // namespace

Trials::Trials(const Subject& subject, std::function<bool()> stop)
    : subject_(subject), stop_(std::move(stop)), model_(make_model(subject.config.model)) {
  const auto train = subject.task->dataset("train");
  probe_ = evaluation_batches(*train, subject.config.train.batch_tokens, kProbe);
  yardstick_.frequencies =
      label_baseline(*train, model_->outputs(), kCountedLabels).nll_on(probe_, subject.config.train.label_smoothing);
  yardstick_.uniform = std::log(static_cast<double>(model_->outputs()));
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
  const auto look = [&](int64_t step, bool diverged) {
    trial.steps.push_back(step);
    trial.losses.push_back(loss_of_batches(*model_, probe_, {.label_smoothing = 0, .loss = loss_of(*subject_.task)}));
    if (step == 0) yardstick_.first = trial.losses.front();
    judged = judge_losses(trial.steps, trial.losses, plan.warm_up, yardstick_, diverged);
  };
  look(0, false);
  const bool brief = steps - plan.warm_up <= kBriefTrial;
  StopsWhen enough([&] {
    const int64_t step = trainer.step() - first;
    if (step % kEvery == 0) look(step, false);
    return (judged.clear && brief) || step >= steps || (stop_ && stop_());
  });
  const TrainResult result = trainer.run({&enough}, {.dry_pass = !std::exchange(tried_, true)});
  const bool diverged = result.outcome == RunOutcome::diverged;
  if (diverged) look(trainer.step() - first, true);
  const bool cut = trainer.step() - first < steps && !diverged;
  if (cut && judged.outcome != Outcome::trains)
    judged = {Outcome::unknown, false, false, "ended before it could be told"};
  if (judged.on_plateau && !cut) {
    double loss = 0;
    trial.gradient_at_input =
        gradient_at_input(model_->parameters(),
                          gradient_of(*subject_.task, subject_.config.train.label_smoothing, *model_, probe_, loss));
    if (trial.gradient_at_input) judged = judge_plateau(std::move(judged), *trial.gradient_at_input);
  }
  trial.outcome = judged.outcome;
  trial.reason = judged.reason;
  trial.gradients = trainer.step() - first;
  trial.seconds = watch.seconds();
  return trial;
}

}  // namespace plumb::check
