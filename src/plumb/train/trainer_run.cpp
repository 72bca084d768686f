#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/timing.h"
#include "plumb/divided/sharded_optimizer.h"
#include "plumb/model/recomputable.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/ops/stochastic_rounding.h"
#include "plumb/optim/bfloat16_parameters.h"
#include "plumb/optim/cautious.h"
#include "plumb/run/parametrization.h"
#include "plumb/task/baseline.h"
#include "plumb/train/corpora.h"
#include "plumb/train/mesh_requirements.h"
#include "plumb/train/trainer_implementation.h"

namespace plumb {
namespace {

/// After this step, a loss far above that of a uniform guess counts as divergence, not as a bad initialization.
constexpr int64_t kSettledStep = 20;

/// The entropy estimated from 1,000,000 labels of V classes is biased downward by V/2,000,000 nats (Miller 1955): by
/// 0.025 for the 50,257 of GPT-2.
constexpr int64_t kCountedLabels = 1'000'000;

/// Throws Error if the steps of a stream would be divided among processes or into micro-batches, or accumulated.
void require_undivided(const TrainConfig& config) {
  const auto require = [](const char* key, int64_t value, int64_t needed) {
    if (value == needed) return;
    throw Error(fmt::format("train.{} = {} cannot be combined with a stream, whose steps are not divided", key, value),
                fmt::format("set it to {}, or task.language-modeling.stream to 0", needed));
  };
  require("processes", config.processes, 1);
  require("accumulate", config.accumulate, 1);
  require("micro_batch_tokens", config.micro_batch_tokens, 0);
}

/// Throws Error on settings that have no effect unless the data have a validation split.
void refuse_validation_settings(const TrainConfig& config) {
  const auto require = [](const char* key, int64_t value, int64_t without) {
    if (value == without) return;
    throw Error(fmt::format("train.{} = {} has no effect: the data have no validation split", key, value),
                fmt::format("prepare the data with one (--valid), or set it to {}", without));
  };
  require("patience", config.patience, 0);
  require("keep_best", config.keep_best, 1);
}

}  // namespace

std::unique_ptr<Optimizer> make_train_optimizer(const TrainConfig& config, const Model& model, const Group& data,
                                                const LayerDivision* division, const ParameterShards* shards) {
  const bool rounds = config.parameters != "float32";
  if (rounds && prescription_of(model.config().residual).unit_matrices) {
    throw Error(
        fmt::format("model.residual = \"{}\" changes the weights after every step, which cannot be combined with "
                    "train.parameters = \"{}\"",
                    model.config().residual, config.parameters),
        "set train.parameters to float32");
  }
  const auto make = [config, rounds](const Parameters& some) {
    std::unique_ptr<Optimizer> optimizer = make_optimizer(config.optimizer, some, config.options);
    if (config.cautious) optimizer = make_cautious(std::move(optimizer), some);
    if (!rounds) return optimizer;
    const auto kind = config.parameters == "bf16" ? Bfloat16Parameters::stochastic : Bfloat16Parameters::copy;
    return with_bfloat16_parameters(std::move(optimizer), some, kind, static_cast<uint64_t>(config.seed));
  };
  if (shards != nullptr) return std::make_unique<ShardedOptimizer>(*shards, make);
  const Parameters& parameters = model.parameters();
  if (!parameters.has_flat()) return make(shapes_of(parameters));  // replaced when the model gets memory
  const bool shards_state = config.shard == "optimizer" && data.size() > 1;
  if (division != nullptr && make(shapes_of(parameters, division))->acts_by_element()) division = nullptr;
  if (!shards_state && division == nullptr) return make(parameters);
  return std::make_unique<ShardedOptimizer>(parameters, shards_state ? data : Group(), make, division);
}

Trainer::Implementation::Implementation(Trainer& trainer, Model& trained, const TrainConfig& given, const Task& learned,
                                        const WatchConfig& watch)
    : owner(trainer),
      model(trained),
      task(learned),
      train_set(learned.dataset("train")),
      source(*train_set, plan_settings(given, mixture_of(given, *train_set), train_set->stream()), given.accumulate),
      timeline(make_timeline(source.costs(), given, source.settings(), trained.config().kind)),
      config(resolved(given, timeline)),
      computation(trained, learned, config, source),
      schedule(make_schedule(config, width_of(trained.config()))),
      settings(parameter_settings(trained, config)),
      optimizer(make_train_optimizer(given, trained)),
      weights(trained, *optimizer, given.average_decay),
      best(best_metric_of(given, learned)),
      watches(watch, learned, given.batch_tokens),
      update_norms(trained.parameters()),
      trouble(given.trouble, update_norms.series(), divergence_limit(), kSettledStep) {
  if (task.data().has_split("valid")) valid_set = task.dataset("valid");
  if (valid_set && valid_set->size() == 0) valid_set = nullptr;
  if (!valid_set) refuse_validation_settings(given);
  if (train_set->size() == 0) throw Error("the training split is empty", "prepare the data again");
  ModelConfig fitting = model.config();
  task.complete(fitting);  // throws if the model does not match the data
  if (source.streams()) require_undivided(given);
  if (given.recompute) require_recomputable(model.config());
  require_divisible_run(given, model, watch);
  require_shardable_run(given, model, *optimizer, watch);
  source.go_to(state.epoch);
  for (const std::string& line : settings_summary(model.parameters(), settings)) say(line);
  if (source.settings().mixture) say(mixture_summary(*source.settings().mixture));
  if (const std::string line = durations_summary(given, watch.every, timeline); !line.empty()) say(line);
}

TrainResult Trainer::Implementation::run(const TrainOptions& options) {
  spills_to = options.spills_to;
  weights.hide();
  if (state.step == 0 && config.parameters != "float32") ops::round_to_nearest(model.parameters().flat());
  if (!state.complete && mesh.all.any(mesh.all.rank() == 0 && options.dry_pass))
    computation.try_largest(state.step + 1);
  tell(observers, &TrainObserver::on_begin, owner);
  prepare(options.peak_rate);
  const RunOutcome outcome = take_steps();
  if (outcome != RunOutcome::diverged) weights.show();
  TrainResult found = result(outcome);
  tell(observers, &TrainObserver::on_end, owner);
  return found;
}

void Trainer::Implementation::prepare(const std::function<double()>& peak_rate) {
  const bool begins = state.step == 0;
  if (peak_rate && !state.complete) recorder.set_peak_rate(peak_rate());
  if (begins && !state.complete && watched.empty()) {  // not again after resuming at step 0
    const Stopwatch watch;
    watch_now();
    state.seconds += watch.seconds();
  }
  if (state.pending) {
    const Stopwatch watch;
    before_saving();  // finish_pending may save one of the best
    finish_pending();
    state.seconds += watch.seconds();
    save();
  }
  if (config.trouble.rolls_back() && (begins || keeper() == nullptr)) {
    mark();
    before_saving();
    if (begins) save();
  }
}

RunOutcome Trainer::Implementation::take_steps() {
  while (!state.complete) {
    StepOutcome outcome = timed_step();
    if (outcome == StepOutcome::goes_back) {
      if (roll_back()) continue;
      outcome = StepOutcome::diverged;
    }
    if (outcome == StepOutcome::diverged) {
      add_point();
      return RunOutcome::diverged;
    }
    tell(observers, &TrainObserver::on_step, owner, recorder.status());
    bool stopping = asks_to_stop();
    const Stopwatch evaluation;
    watch_now();
    after_step(stopping);
    state.seconds += evaluation.seconds();
    if (stopping && (!state.complete || state.pending)) return RunOutcome::stopped;
  }
  return RunOutcome::finished;
}

Trainer::Implementation::StepOutcome Trainer::Implementation::timed_step() {
  const Stopwatch watch;
  const ExchangeCost before = computation.exchange_cost();
  const double waited = source.wait_seconds();
  StepOutcome outcome{};
  computation.within_memory(fmt::format("step {}", state.step + 1), window(), [&] { outcome = step(); });
  const double seconds = watch.seconds();
  recorder.add_step(seconds, source.wait_seconds() - waited, before, computation.exchange_cost());
  state.seconds += seconds;  // before files are written, so that they include it
  return outcome;
}

TrainObserver* Trainer::Implementation::keeper() const {
  const auto found = std::find_if(observers.begin(), observers.end(),
                                  [](const TrainObserver* each) { return each->keeps_checkpoints(); });
  return found == observers.end() ? nullptr : *found;
}

void Trainer::Implementation::mark() {
  if (!config.trouble.rolls_back() || trouble.suspects()) return;
  trouble.set_anchor(state.step);
  if (keeper() != nullptr || mesh.all.rank() > 0) return;
  marked = snapshot().copied();
}

bool Trainer::Implementation::roll_back() {
  const double seconds = state.seconds;
  const TroubleJudge now = trouble;
  bool found = true;
  if (mesh.all.rank() == 0) {
    TrainObserver* const from = keeper();
    found = from != nullptr ? from->load_checkpoint(owner, trouble.anchor()) : marked.has_value();
    if (found && from == nullptr) restore(*marked, "memory");
  }
  if (mesh.all.any(!found)) return false;
  if (mesh.all.rank() == 0) trouble.continue_from(now);
  owner.join(mesh.all);
  state.seconds = seconds;
  owner.set_history(std::move(history), std::move(watched));
  recorder.begin_anew();
  tell(observers, &TrainObserver::on_rollback, owner);
  return true;
}

TrainResult Trainer::Implementation::result(RunOutcome outcome) const {
  TrainResult result{.outcome = outcome, .steps = state.step, .history = history, .metrics = last_metrics(history)};
  if (state.best) result.best = {best.name, *state.best, state.best_step};
  result.seconds = state.seconds;
  result.watched = watched;
  result.troubles = trouble.records();
  result.diagnosis = diagnosis;
  if (outcome != RunOutcome::stopped && mesh.all.rank() == 0) result.learning = learning(outcome);
  return result;
}

LearningJudgment Trainer::Implementation::learning(RunOutcome outcome) const {
  LabelBaseline baseline(model.outputs());
  const BatchPlan& plan = source.plan();
  for (int64_t i = 0; i < plan.size() && baseline.labels() < kCountedLabels; ++i)
    baseline.add(train_set->batch(plan.batches(i, 1).front()));
  LossCurve curve{.frequencies = baseline.nll(),
                  .uniform = std::log(static_cast<double>(model.outputs())),
                  .diverged = outcome == RunOutcome::diverged};
  for (const TrainPoint& point : history) {
    curve.steps.push_back(point.step);
    curve.losses.push_back(point.nll);
  }
  LearningJudgment judged = judge_learning(curve);
  if (valid_set && last_metrics(history).get("valid_nll")) judged.valid_frequencies = label_baseline(*valid_set).nll();
  return judged;
}

bool Trainer::Implementation::at_end() const {
  return state.step >= config.steps.in_steps() || (config.epochs > 0 && state.epoch >= config.epochs);
}

bool Trainer::Implementation::out_of_patience() const {
  return config.patience > 0 && state.validations_since_best >= config.patience;
}

double Trainer::Implementation::divergence_limit() const {
  return config.divergence_factor * std::max(std::log(static_cast<double>(model.outputs())), 2.0);
}

}  // namespace plumb
