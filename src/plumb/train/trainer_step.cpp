#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/progress.h"
#include "plumb/data/batches.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/clipping.h"
#include "plumb/train/diagnosis.h"
#include "plumb/train/trainer_implementation.h"

namespace plumb {

Trainer::Implementation::StepOutcome Trainer::Implementation::step() {
  const int64_t number = state.step + 1;
  recorder.point.step = number;
  recorder.point.epoch = state.epoch;
  recorder.point.epochs = epochs_after_step();
  recorder.point.learning_rate = rate_of(number) * source.rate_factor(state.batch);
  if (trouble.passes_over(number)) return pass_over(number);
  ops::MatrixPrecision precision(ops::precision_of(config.precision));
  const ops::PrecisionGuard guard(precision);
  const std::vector<Tensor> buffers = copies_of_buffers(model.parameters());
  const ComputedStep computed = computation.compute(source.take(state.batch, computation.division()), number, carried);
  const std::vector<ParameterStep> steps = parameter_steps(settings, number, recorder.point.learning_rate);
  const std::vector<Tensor> clipped = clipped_by_element(config, model.parameters(), computed.gradient);
  const StepReading reading = read_step(computed, clips_elements(config) ? &clipped : nullptr, steps,
                                        last_update.square_norms, mesh, division_or_null(), shards.get());
  see_updates(reading.square_updates);
  const StepNumbers numbers{number, reading.loss, reading.gradient_norm, recorder.point.learning_rate};
  const StepJudgment judgment = trouble.judge(numbers);
  count(computed, reading, numbers, judgment.action == StepJudgment::Action::skip);
  report_trouble(judgment, numbers, inspect(judgment, numbers, computed.gradient, buffers));
  switch (judgment.action) {
    case StepJudgment::Action::skip:
      restore_buffers(model.parameters(), buffers);
      weights.add(number);
      advance();
      return StepOutcome::passed;
    case StepJudgment::Action::rollback:
      return StepOutcome::goes_back;
    case StepJudgment::Action::diverge:
      explain(judgment, numbers, computed.gradient, steps);
      return StepOutcome::diverged;
    case StepJudgment::Action::update:
      break;
  }
  update(computed, clipped, reading, steps, numbers);
  carried = computed.carried;
  weights.add(number);
  advance();
  return StepOutcome::updated;
}

Trainer::Implementation::StepOutcome Trainer::Implementation::pass_over(int64_t number) {
  trouble.pass_over();
  weights.add(number);
  advance();
  return StepOutcome::passed;
}

void Trainer::Implementation::count(const ComputedStep& computed, const StepReading& reading,
                                    const StepNumbers& numbers, bool skipped) {
  recorder.point.gradient_norm = numbers.gradient_norm;
  recorder.add_work(reading.tokens, computed.flops);
  if (skipped) return;
  recorder.add_loss(reading.loss, reading.nll / std::max(computed.weight, 1.0));
  state.loss += reading.loss * computed.weight;
  state.nll += reading.nll;
  state.weight += computed.weight;
  state.tokens += reading.tokens;
}

void Trainer::Implementation::update(const ComputedStep& computed, const std::vector<Tensor>& clipped,
                                     const StepReading& reading, const std::vector<ParameterStep>& steps,
                                     const StepNumbers& numbers) {
  if (is_watched(numbers.step)) {
    WatchedRun run = watched_run();
    run.gradient = computed.gradient;
    watches.before_step(run);
  }
  if (trouble.watches_spikes()) update_norms.before_step();
  collected.clear();
  optimizer->step(clipped, steps, clip_scale(reading.clipped_norm, config.clip_norm));
  std::vector<bool> frozen;
  for (const ParameterStep& each : steps) frozen.push_back(each.frozen);
  model.constrain(frozen);
  if (trouble.watches_spikes()) last_update = {numbers.step, numbers.learning_rate, update_norms.square_norms()};
}

std::optional<InspectedStep> Trainer::Implementation::inspect(const StepJudgment& judgment, const StepNumbers& numbers,
                                                              const std::vector<Tensor>& gradient,
                                                              const std::vector<Tensor>& buffers) {
  if (judgment.cause != StepJudgment::Cause::nonfinite) return std::nullopt;
  const StepShare share = source.share_of(window(), computation.division());
  const auto again = [&](Inspection* inspection) -> StepTrial {
    ComputedStep computed = computation.compute(share, numbers.step, carried, inspection);
    const std::vector<ParameterStep> steps = parameter_steps(settings, numbers.step, 0);
    const StepReading found = read_step(computed, nullptr, steps, {}, mesh, division_or_null(), shards.get());
    return {found.loss, found.gradient_norm, std::move(computed.gradient)};
  };
  const Parameters& parameters = shards_parameters() ? shards->local() : model.parameters();
  return inspect_step(again, {numbers.loss, numbers.gradient_norm, gradient}, parameters, buffers, mesh.all, task);
}

void Trainer::Implementation::report_trouble(const StepJudgment& judgment, const StepNumbers& numbers,
                                             const std::optional<InspectedStep>& inspected) {
  trouble.record(judgment, numbers, inspected);
  if (judgment.cause == StepJudgment::Cause::none) return;
  const TroubleRecord& record = trouble.records().back();
  constexpr int64_t kSpikesSaid = 5;
  const bool trains_on =
      judgment.cause == StepJudgment::Cause::spike && judgment.action == StepJudgment::Action::update;
  if (trains_on) ++reported_spikes;
  if (mesh.all.rank() == 0 && (!trains_on || reported_spikes <= kSpikesSaid)) {
    say(to_string(record));
    if (trains_on && reported_spikes == kSpikesSaid) say("further spikes are only recorded, in metrics.jsonl");
  }
  tell(observers, &TrainObserver::on_trouble, record);
}

void Trainer::Implementation::explain(const StepJudgment& judgment, const StepNumbers& numbers,
                                      const std::vector<Tensor>& gradient, const std::vector<ParameterStep>& steps) {
  if (mesh.all.rank() != 0 || division || shards) return;  // rank 0 cannot compute a divided model alone
  constexpr int64_t kExamples = 64;
  const std::vector<Batch> batches = evaluation_batches(*train_set, config.batch_tokens, kExamples);
  const WatchedRun run{model, task, config, *optimizer, *train_set, batches, state.step, numbers.learning_rate, steps};
  diagnosis = diagnose({run, numbers, judgment, gradient, trouble, watched, finite_on(run)});
  for (const std::string& line : diagnosis) say("  " + line);
}

void Trainer::Implementation::see_updates(const std::vector<double>& square_norms) {
  if (square_norms.empty()) return;
  std::vector<double> norms;
  for (const double square : square_norms) norms.push_back(std::sqrt(square));
  trouble.see_updates(last_update.step, last_update.learning_rate, norms);
  last_update = {};
}

double Trainer::Implementation::epochs_after_step() const {
  const int64_t begun = state.batch / config.accumulate;
  const int64_t all = (source.plan().size() + config.accumulate - 1) / config.accumulate;
  return static_cast<double>(state.epoch) + static_cast<double>(begun + 1) / static_cast<double>(all);
}

void Trainer::Implementation::advance() {
  ++state.step;
  state.batch += source.count(state.batch);
  if (state.batch == source.plan().size()) {
    state.batch = 0;
    carried = {};
    ++state.epoch;
    source.go_to(state.epoch);
  }
  state.complete = at_end();
}

}  // namespace plumb
