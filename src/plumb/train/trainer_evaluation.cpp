#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/io/spilled_tensors.h"
#include "plumb/train/trainer_implementation.h"

namespace plumb {
namespace {

/// The maximum number of tokens that a process computes at once.
int64_t computed_tokens(const TrainConfig& config) {
  return config.micro_batch_tokens > 0 ? std::min(config.micro_batch_tokens, config.batch_tokens) : config.batch_tokens;
}

}  // namespace

void Trainer::Implementation::after_step(bool& stopping) {
  EvaluationRank rank;
  const bool validating = valid_set && (due(config.validate_every) || state.complete);
  if (validating) {
    validate_now();
    optimizer->see_validation(recorder.point.metrics.get("valid_nll").value_or(NAN));
  }
  if (validating && !best.is_slow) rank = judge_evaluation();
  const bool scoring = valid_set && (due(config.score_every) || (state.complete && config.score_every.amount() >= 0));
  if (scoring && (state.complete || stopping) && has_slow_metrics(task)) {
    // Slow metrics may take so long that the run is interrupted, so the step is saved without them first.
    close_point();
    settle();
    report_rank(rank);
    state.pending = recorder.point;
    save();
    stopping = stopping || asks_to_stop();
    if (stopping) return;
    finish_pending();
    save();
    return;
  }
  if (scoring) score_now();
  if (scoring && best.is_slow) rank = judge_evaluation();
  if (state.step == 1 || due(config.log_every) || validating || scoring || state.complete) add_point();
  const bool saving = due(config.checkpoint_every) || due(config.keep_every) || state.complete || stopping;
  if (saving || rank.best || rank.among_best) settle();
  report_rank(rank);
  if (saving) save();
}

void Trainer::Implementation::validate_now() {
  const ShownWeights shown(weights);
  const Metrics found = task.metrics(computation.evaluate(*valid_set, computed_tokens(config)));
  for (const auto& [name, value] : found)
    recorder.point.metrics.set(name == "loss" || name == "nll" ? "valid_" + name : name, value);
}

void Trainer::Implementation::score_now() {
  if (shards && !has_slow_metrics(task)) return;  // fetches nothing in vain
  Metrics& metrics = recorder.point.metrics;
  const UnshardedParameters fetched(shards.get());
  if (mesh.data.rank() == 0 && mesh.pipeline.size() > 1) {
    const Parameters& parameters = model.parameters();
    NamedTensors values;
    for (const StateTensor& own : state_of(weights.evaluated(), parameters)) {
      values.emplace_back(name_of(own, parameters),
                          own.parameter ? division->full(*own.parameter, own.value.detach()) : own.value);
    }
    if (mesh.all.rank() == 0) {  // which needs all layers
      const std::unique_ptr<Model> all = make_model(model.config(), model.parameters().type());
      load_parameters(all->parameters(), values, "the stages' parameters");
      metrics.set(task.score(*all, "valid"));
    }
  } else if (mesh.data.rank() == 0) {  // rank 0, and those that compute a divided model with it
    const ShownWeights shown(weights);
    metrics.set(task.score(model, "valid"));
  }
  if (!best.is_slow) return;
  // Every process uses the value of rank 0.
  const std::optional<double> own = mesh.all.rank() == 0 ? metrics.get(best.name) : std::nullopt;
  const std::vector<double> found = mesh.all.sums({own ? 1.0 : 0.0, own.value_or(0.0)});
  if (found[0] > 0) metrics.set(best.name, found[1]);
}

void Trainer::Implementation::finish_pending() {
  recorder.point = *std::exchange(state.pending, std::nullopt);
  score_now();
  const EvaluationRank rank = best.is_slow ? judge_evaluation() : EvaluationRank{};
  publish_point();
  report_rank(rank);
}

EvaluationRank Trainer::Implementation::judge_evaluation() {
  const EvaluationRank rank = rank_evaluation(recorder.point.metrics.get(best.name), best, config.keep_best, state);
  if (out_of_patience()) state.complete = true;
  return rank;
}

void Trainer::Implementation::report_rank(const EvaluationRank& rank) {
  if (rank.among_best) tell(observers, &TrainObserver::on_among_best, owner);
  if (rank.best) tell(observers, &TrainObserver::on_best, owner);
}

void Trainer::Implementation::publish_point() {
  history.push_back(recorder.take());
  tell(observers, &TrainObserver::on_point, history.back());
}

void Trainer::Implementation::add_point() {
  close_point();
  publish_point();
}

WatchedRun Trainer::Implementation::watched_run() {
  const int64_t last = std::max<int64_t>(state.step, 1);
  const double first = rate_of(1) * source.rate_factor(state.batch);
  const double rate = recorder.point.step > 0 ? recorder.point.learning_rate : first;
  return {model,      task,       config,
          *optimizer, *train_set, watches.batches(),
          state.step, rate,       parameter_steps(settings, last, rate)};
}

bool Trainer::Implementation::is_watched(int64_t step) {
  return !watches.every().is_zero() && (step <= 1 || timeline.due(watches.every(), step));
}

void Trainer::Implementation::watch_now() {
  if (!is_watched(state.step)) return;
  watched.push_back(watches.measure(watched_run()));
  tell(observers, &TrainObserver::on_watch, watched.back());
}

void Trainer::Implementation::before_saving() {
  collected.clear();
  if (!collects() || (!sharded() && mesh.data.rank() > 0)) return;
  for (const Part& part : parts()) {
    const std::vector<StateTensor> own = part.values();
    if (part.own && own.empty()) continue;
    SpilledTensors full(mesh.all.rank() == 0 ? spills_to : std::filesystem::path());
    for (const StateTensor& tensor : own) {
      const Tensor value = full_of(part, tensor);
      if (mesh.all.rank() == 0) full.add(name_of(tensor, model.parameters()), value);
    }
    if (mesh.all.rank() == 0) collected.push_back({part.file, full.all(), part.metadata, /*lasts=*/true});
  }
}

void Trainer::Implementation::settle() {
  before_saving();
  see_updates(sums_of_updates(ops::read(last_update.square_norms), mesh, shards.get()));
  if (due(config.checkpoint_every)) mark();
}

}  // namespace plumb
