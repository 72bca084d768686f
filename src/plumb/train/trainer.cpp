#include "plumb/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/running_mean.h"
#include "plumb/base/timing.h"
#include "plumb/data/batches.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/flops.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/cautious.h"
#include "plumb/optim/clipping.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/optim/sharded.h"
#include "plumb/parallel/gradient_exchange.h"
#include "plumb/train/best_metric.h"
#include "plumb/train/diagnosis.h"
#include "plumb/train/evaluated_weights.h"
#include "plumb/train/inspection.h"
#include "plumb/train/memory_error.h"
#include "plumb/train/progress_line.h"
#include "plumb/train/snapshot.h"
#include "plumb/train/step_share.h"
#include "plumb/train/step_source.h"
#include "plumb/train/trouble_judge.h"
#include "plumb/train/update_norms.h"

namespace plumb {
namespace {

/// After this step, a loss far above that of a uniform guess is divergence, not initialization.
constexpr int64_t kSettledStep = 20;

/// The most tokens that a process computes at once.
int64_t computed_tokens(const TrainConfig& config) {
  return config.micro_batch_tokens > 0 ? std::min(config.micro_batch_tokens, config.batch_tokens) : config.batch_tokens;
}

/// The progress of a run: everything except the tensors that a resumed run needs. Stored in state.json.
struct State {
  int64_t step = 0;   // steps taken
  int64_t epoch = 0;  // epoch of the next batch
  int64_t batch = 0;  // index of the next batch within the epoch
  // Sums over labels since the last point.
  double loss = 0;
  double nll = 0;
  double weight = 0;
  std::optional<int64_t> tokens = 0;  // trained so far (Batch::tokens); unknown if an older version began the run
  std::optional<double> best;         // the best value of train.best_metric
  int64_t best_step = 0;
  std::vector<std::pair<int64_t, double>> best_list;  // with train.keep_best > 1: steps and values, the best first
  int64_t validations_since_best = 0;
  bool complete = false;  // nothing is left to train
  double seconds = 0;
  Json pending;  // the point of the last step, if its slow metrics have not been computed yet
};

/// `metric`: train.best_metric.
Json to_json(const State& state, const std::string& metric) {
  Json json = make_document("state", 1);
  json["step"] = state.step;
  json["epoch"] = state.epoch;
  json["batch"] = state.batch;
  json["loss_sum"] = state.loss;
  json["nll_sum"] = state.nll;
  json["weight"] = state.weight;
  if (state.tokens) json["tokens"] = *state.tokens;
  if (state.best) json["best_" + metric] = *state.best;
  if (!state.best_list.empty()) json["best_list"] = state.best_list;
  json["best_step"] = state.best_step;
  json["validations_since_best"] = state.validations_since_best;
  json["complete"] = state.complete;
  json["seconds"] = state.seconds;
  if (!state.pending.is_null()) json["pending_point"] = state.pending;
  return json;
}

State state_from_json(const Json& json, const std::string& metric, const std::string& origin) {
  try {
    State state;
    state.step = json.at("step");
    state.epoch = json.at("epoch");
    state.batch = json.at("batch");
    state.loss = json.at("loss_sum");
    state.nll = json.at("nll_sum");
    state.weight = json.at("weight");
    state.tokens = json.contains("tokens") ? std::optional(json["tokens"].get<int64_t>()) : std::nullopt;
    if (json.contains("best_" + metric)) state.best = json["best_" + metric].get<double>();
    if (json.contains("best_list")) json["best_list"].get_to(state.best_list);
    state.best_step = json.at("best_step");
    state.validations_since_best = json.at("validations_since_best");
    state.complete = json.at("complete");
    state.seconds = json.at("seconds");
    state.pending = json.value("pending_point", Json());
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
  }
}

std::unique_ptr<Optimizer> make_train_optimizer(const TrainConfig& config, const Parameters& parameters) {
  const auto make = [config](const Parameters& some) {
    std::unique_ptr<Optimizer> optimizer = make_optimizer(config.optimizer, some, config.options);
    return config.cautious ? make_cautious(std::move(optimizer), some) : std::move(optimizer);
  };
  if (!config.shard_optimizer) return make(parameters);
  if (make(parameters)->averages_weights())
    throw Error(fmt::format("train.shard_optimizer: the state of {} cannot be shared out", config.optimizer));
  return std::make_unique<ShardedOptimizer>(parameters, make);
}

}  // namespace

struct Trainer::Implementation {
  Implementation(Model& trained, const TrainConfig& given, const Task& learned, const WatchConfig& watch)
      : model(trained),
        task(learned),
        config(given),
        train_set(learned.dataset("train")),
        source(*train_set, {.tokens = given.batch_tokens, .seed = static_cast<uint64_t>(given.seed)}, given.accumulate),
        schedule(make_schedule(given, trained.config().d_model)),
        settings(parameter_settings(trained.parameters(), given.groups, given.weight_decay)),
        optimizer(make_train_optimizer(given, trained.parameters())),
        weights(trained, *optimizer, given.average_decay),
        values(trained.parameters().values()),
        exchange(make_exchange({})),
        alone(make_exchange({})),
        flops(trained),
        best(best_metric_of(given, learned)),
        watches(watch, learned, given.batch_tokens),
        update_norms(trained.parameters()),
        trouble(given.trouble, update_norms.names(), divergence_limit(), kSettledStep) {
    validate(config);
    if (task.data().has_split("valid")) valid_set = task.dataset("valid");
    if (valid_set && valid_set->size() == 0) valid_set = nullptr;
    if (train_set->size() == 0) throw Error("the training split is empty", "prepare the data again");
    ModelConfig fitting = model.config();
    task.complete(fitting);  // throws if the model does not match the data
    source.go_to(state.epoch);
    for (const std::string& line : settings_summary(model.parameters(), settings)) say(line);
  }

  /// The batches of the next step: train.accumulate of them, or those that are left of the epoch.
  [[nodiscard]] StepSource::Batches window() const { return source.batches(state.batch); }

  [[nodiscard]] Division division() const { return {group.rank(), group.size(), config.micro_batch_tokens}; }

  /// This process's part of the loss of some batches, which the device may still be computing, and the gradient of all.
  struct Result {
    std::vector<ops::Number> losses;  // parts of the mean over the labels of all processes
    std::vector<ops::Number> nlls;    // summed over labels
    double weight = 0;                // total weight of the labels of all processes
    int64_t tokens = 0;               // of this process; see Batch::tokens
    double flops = 0;                 // of this process; see model/flops.h
    std::vector<Tensor> gradient;     // one tensor per parameter, summed over the processes
  };

  /// Forward and backward pass of this process's micro-batches, one after another, as step `number`.
  [[nodiscard]] Result computed(const StepShare& share, int64_t number, Inspection* inspection = nullptr) const {
    Result result;
    result.weight = share.weight;
    for (const MicroBatch& part : share.micro_batches) {
      const auto& [batch, idle] = part;
      ForwardContext context(model.config().dropout, static_cast<uint64_t>(config.seed), number,
                             config.synchronize_norms ? group : Group());
      if (inspection != nullptr && !idle) inspection->watch(context, batch);
      const double scale = idle || share.weight == 0 ? 0.0 : 1.0 / share.weight;
      const Loss loss = task.loss(model, batch, {config.label_smoothing, scale, false}, context);
      const bool last = &part == &share.micro_batches.back();  // exchanges the sum while its backward pass runs
      result.gradient = (last ? exchange : alone)->gradients_of(loss.value, result.gradient);
      result.losses.emplace_back(loss.value);
      if (idle) continue;
      result.nlls.push_back(loss.nll);
      result.tokens += batch.tokens();
      result.flops += 3 * flops.forward(batch);
    }
    return result;
  }

  /// Calls `work`, which computes these batches. Throws Error that names them if memory runs out.
  void within_memory(const std::string& when, std::span<const std::vector<int64_t>> batches,
                     const std::function<void()>& work) const {
    const char* hint = config.micro_batch_tokens > 0
                           ? "lower train.micro_batch_tokens, which does not change the result"
                           : "set train.micro_batch_tokens, which does not change the result, below train.batch_tokens";
    with_enough_memory(
        work, [&] { return fmt::format("{}: {}", when, describe_batches(source.costs(), batches)); }, hint);
  }

  /// Computes the batches that need the most memory without taking a step or changing anything.
  void dry_pass() const {
    std::vector<Tensor> averages;  // running averages of norms
    for (const Parameter& buffer : model.parameters().buffers()) averages.push_back(buffer.value.clone());
    ops::MatrixPrecision precision(ops::precision_of(config.precision));
    const ops::PrecisionGuard guard(precision);
    const int64_t number = state.step + 1;
    StepSource::Batches largest;  // of each window of the plan
    for (int64_t i = 0; i < source.plan().windows(); ++i) {
      const auto planned = source.plan().window(i);
      for (const size_t batch : largest_batches(source.costs(), *planned)) largest.push_back((*planned)[batch]);
    }
    for (const size_t i : largest_batches(source.costs(), largest)) {
      within_memory(fmt::format("a dry pass before step {}", number), std::span(largest).subspan(i, 1), [&] {
        // Where gradients are accumulated, those of one batch are held during the next.
        const StepSource::Batches tried(config.accumulate > 1 ? 2 : 1, largest[i]);
        (void)computed(source.share_of(tried, division()), number);
      });
    }
    const at::NoGradGuard no_graph;
    for (size_t i = 0; i < averages.size(); ++i) model.parameters().buffers()[i].value.copy_(averages[i]);
  }

  [[nodiscard]] bool clips_elements() const { return config.clip_value > 0 || config.clip_block > 0; }
  /// Gradients clipped by value and by block.
  [[nodiscard]] std::vector<Tensor> clipped_by_element(std::vector<Tensor> gradient) const {
    if (config.clip_value > 0) gradient = clip_values(gradient, config.clip_value);
    if (config.clip_block > 0) gradient = clip_blocks(model.parameters(), gradient, config.clip_block);
    return gradient;
  }

  [[nodiscard]] std::unique_ptr<GradientExchange> make_exchange(const Group& among) const {
    GradientExchange::Options options;
    options.overlap = config.overlap;
    options.half = config.exchange_precision == "bf16";
    return std::make_unique<GradientExchange>(among, values, options);
  }

  /// Everything that this process has exchanged with others.
  [[nodiscard]] ExchangeCost exchanged() const {
    ExchangeCost cost = group.cost();
    cost.seconds += exchange->cost().seconds;
    cost.bytes += exchange->cost().bytes;
    return cost;
  }

  /// Every process calls this before rank 0 may save.
  void before_saving() {
    if (auto* sharded = dynamic_cast<ShardedOptimizer*>(optimizer.get())) sharded->collect();
  }

  /// A loss above this is divergence, not initialization. With few classes, a confident mistake costs more than a
  /// guess. 0: no limit.
  [[nodiscard]] double divergence_limit() const {
    return config.divergence_factor * std::max(std::log(static_cast<double>(model.outputs())), 2.0);
  }

  /// How a step ended: `passed` steps count, without an update; to go back is up to the caller.
  enum class Ended { updated, passed, goes_back, diverged };

  /// Forward and backward pass of one batch, and one step of the optimizer, unless the judge objects: then the
  /// parameters and the optimizer remain as they are.
  Ended step(const TrainHooks& hooks) {
    const int64_t number = state.step + 1;
    if (trouble.passes_over(number)) return pass_over(number);
    ops::MatrixPrecision precision(ops::precision_of(config.precision));
    const ops::PrecisionGuard guard(precision);
    const std::vector<Tensor> buffers = copies_of_buffers(model.parameters());
    const Result found = computed(source.take(state.batch, division()), number);
    const std::vector<Tensor>& gradient = found.gradient;
    point.learning_rate = rate_of(number);
    const std::vector<ParameterStep> steps = parameter_steps(settings, number, point.learning_rate);
    const std::vector<Tensor> clipped = clipped_by_element(gradient);
    // The one place in a step that waits for the device.
    std::vector<ops::Number> asked = {square_norm(gradient, steps),
                                      clips_elements() ? square_norm(clipped, steps) : ops::Number()};
    const std::ptrdiff_t norms = std::ssize(asked);
    asked.insert(asked.end(), found.losses.begin(), found.losses.end());
    asked.insert(asked.end(), found.nlls.begin(), found.nlls.end());
    asked.insert(asked.end(), moved.square_norms.begin(), moved.square_norms.end());
    const std::vector<double> read = ops::read(asked);
    const auto losses = read.begin() + norms, nlls = losses + std::ssize(found.losses);
    const auto updates = nlls + std::ssize(found.nlls);
    see_updates({updates, read.end()});
    const std::vector<double> sums = group.sums(
        {std::accumulate(losses, nlls, 0.0), std::accumulate(nlls, updates, 0.0), static_cast<double>(found.tokens)});
    const StepNumbers numbers{number, sums[0], std::sqrt(read[0]), point.learning_rate};
    point.step = number;
    point.epoch = state.epoch;
    point.gradient_norm = numbers.gradient_norm;
    timed.tokens += static_cast<int64_t>(sums[2]);
    timed.flops += found.flops;
    const StepJudgment judgment = trouble.judge(numbers);
    if (judgment.action != StepJudgment::Action::skip) {
      shown_loss = running_loss.add(numbers.loss);
      shown_nll = running_nll.add(sums[1] / std::max(found.weight, 1.0));
      state.loss += numbers.loss * found.weight;
      state.nll += sums[1];
      state.weight += found.weight;
      if (state.tokens) *state.tokens += static_cast<int64_t>(sums[2]);
    }
    Json findings = Json::object();
    if (judgment.cause == StepJudgment::Cause::nonfinite) {
      findings = inspect_step([&](Inspection* inspection) { return try_step(number, inspection); },
                              {numbers.loss, numbers.gradient_norm, gradient}, model, buffers, group, task);
    }
    report(judgment, numbers, findings, hooks);
    if (judgment.action == StepJudgment::Action::skip) {
      restore_buffers(model.parameters(), buffers);
      advance();
      return Ended::passed;
    }
    if (judgment.action == StepJudgment::Action::rollback) return Ended::goes_back;
    if (judgment.action == StepJudgment::Action::diverge) {
      explain(judgment, numbers, gradient, steps);
      return Ended::diverged;
    }
    if (watches.due(number)) {
      WatchedRun run = seen();
      run.gradient = gradient;
      watches.before_step(run);
    }
    if (trouble.watches_spikes()) update_norms.before_step();
    const double norm = clips_elements() ? std::sqrt(read[1]) : numbers.gradient_norm;
    optimizer->step(clipped, steps, clip_scale(norm, config.clip_norm));
    std::vector<bool> frozen;
    for (const ParameterStep& each : steps) frozen.push_back(each.frozen);
    model.constrain(frozen);
    if (trouble.watches_spikes()) moved = {number, numbers.learning_rate, update_norms.square_norms()};
    weights.add(number);
    advance();
    return Ended::updated;
  }

  /// Measures why the run diverged, on its first examples.
  void explain(const StepJudgment& judgment, const StepNumbers& numbers, const std::vector<Tensor>& gradient,
               const std::vector<ParameterStep>& steps) {
    if (group.rank() != 0) return;
    constexpr int64_t kExamples = 64;
    const std::vector<Batch> batches = evaluation_batches(*train_set, config.batch_tokens, kExamples);
    const WatchedRun run{model, task, config, *optimizer, *train_set, batches, state.step, numbers.learning_rate,
                         steps};
    diagnosis = diagnose({run, numbers, judgment, gradient, trouble, watched, finite_on(run)});
    for (const std::string& line : diagnosis) say("  " + line);
  }

  /// A step whose batch a rollback passes over.
  Ended pass_over(int64_t number) {
    trouble.pass_over();
    point.step = number;
    point.epoch = state.epoch;
    point.learning_rate = rate_of(number);
    advance();
    return Ended::passed;
  }

  /// Makes this the state that a rollback returns to, unless the last update is in doubt.
  void mark(const TrainHooks& hooks) {
    if (!config.trouble.rolls_back() || trouble.suspects()) return;
    trouble.set_anchor(state.step);
    if (hooks.go_back || group.rank() > 0) return;
    marked = {
        model.parameters().flat().detach().clone(), copies_of_buffers(model.parameters()), {}, state_document(), {}};
    for (const auto& [name, tensor] : optimizer->state()) marked.optimizer.emplace_back(name, tensor.clone());
    if (const Tensor average = state.step > 0 ? weights.received() : Tensor(); average.defined())
      marked.average = average.clone();
  }

  /// Returns to the state that was marked, with the counters and records of trouble as they are now. False if it is
  /// lost.
  bool go_back(Trainer& trainer, const TrainHooks& hooks) {
    const double seconds = state.seconds;
    const TroubleJudge now = trouble;
    bool found = true;
    if (group.rank() == 0) {
      if (hooks.go_back) {
        found = hooks.go_back(trainer, trouble.anchor());
      } else {
        const at::NoGradGuard no_graph;
        model.parameters().flat().copy_(marked.parameters);
        restore_buffers(model.parameters(), marked.buffers);
        optimizer->load_state(marked.optimizer, "memory");
        if (marked.average.defined()) weights.received().copy_(marked.average);
        take_state(marked.state, "memory");
      }
      const Json then = trouble.state();
      trouble = now;
      trouble.return_to(then);
    }
    if (group.any(!found)) return false;
    trainer.join(group);
    state.seconds = seconds;
    state.complete = at_end() || out_of_patience();
    trainer.set_history(std::move(history), std::move(watched));
    point = {};
    if (hooks.went_back) hooks.went_back(trainer);
    return true;
  }

  /// The step from the current parameters once more, without an update.
  [[nodiscard]] StepTrial try_step(int64_t number, Inspection* inspection) const {
    Result found = computed(source.share_of(window(), division()), number, inspection);
    const double norm = std::sqrt(square_norm(found.gradient, parameter_steps(settings, number, 0)));
    const double loss = std::accumulate(found.losses.begin(), found.losses.end(), 0.0);
    return {group.sums({loss})[0], norm, std::move(found.gradient)};
  }

  /// Hands the last step's updates to the judge, once they are known.
  void see_updates(const std::vector<double>& square_norms) {
    if (square_norms.empty()) return;
    std::vector<double> norms;
    for (const double square : square_norms) norms.push_back(std::sqrt(square));
    trouble.see_updates(moved.step, moved.learning_rate, norms);
    moved = {};
  }

  /// Records what the judge found, and tells it.
  void report(const StepJudgment& judgment, const StepNumbers& numbers, const Json& findings, const TrainHooks& hooks) {
    trouble.record(judgment, numbers, findings);
    if (judgment.cause == StepJudgment::Cause::none) return;
    const TroubleRecord& record = trouble.records().back();
    if (group.rank() == 0) say(to_string(record));
    if (hooks.trouble) hooks.trouble(record);
  }

  [[nodiscard]] double rate_of(int64_t number) const { return schedule(number) * trouble.rate_factor(); }

  void advance() {
    ++state.step;
    state.batch += source.count(state.batch);
    if (state.batch == source.plan().size()) {
      state.batch = 0;
      ++state.epoch;
      source.go_to(state.epoch);
    }
    state.complete = at_end();
  }

  [[nodiscard]] bool at_end() const {
    return state.step >= config.steps || (config.epochs > 0 && state.epoch >= config.epochs);
  }
  [[nodiscard]] bool out_of_patience() const {
    return config.patience > 0 && state.validations_since_best >= config.patience;
  }

  [[nodiscard]] std::optional<double> ceiling_fraction() const {
    if (peak_rate <= 0 || timed.seconds <= 0) return std::nullopt;
    return timed.flops / timed.seconds / peak_rate;
  }

  /// After a step, for people.
  [[nodiscard]] TrainStatus status() const {
    return {point.epoch,         shown_loss,
            shown_nll,           point.learning_rate,
            point.gradient_norm, static_cast<double>(timed.tokens) / timed.seconds,
            ceiling_fraction(),  timed.data_seconds / timed.seconds};
  }

  /// Closes the span since the last point.
  void close_point() {
    // NaN if all steps were skipped; labels without weight count 0.
    const double weight = state.weight > 0 || trouble.skipped() > 0 ? state.weight : 1;
    point.loss = state.loss / weight;
    point.nll = state.nll / weight;
    if (trouble.skipped() > 0) point.skipped_steps = static_cast<double>(trouble.skipped());
    point.tokens_per_second = timed.seconds > 0 ? static_cast<double>(timed.tokens) / timed.seconds : 0;
    point.tokens = state.tokens;
    point.ceiling_fraction = ceiling_fraction();
    if (timed.steps > 0) point.data_seconds = timed.data_seconds / static_cast<double>(timed.steps);
    if (timed.exchange_bytes > 0) {
      point.exchange_seconds = timed.exchange_seconds / static_cast<double>(timed.steps);
      point.exchange_bytes = static_cast<double>(timed.exchange_bytes) / static_cast<double>(timed.steps);
    }
    state.loss = state.nll = state.weight = 0;
    timed = {};
  }

  /// Hands the point out, after close_point().
  void publish_point(const TrainHooks& hooks) {
    history.push_back(point);
    if (hooks.point) hooks.point(point);
    point = {};
  }

  void add_point(const TrainHooks& hooks) {
    close_point();
    publish_point(hooks);
  }

  void validate_now() {
    const ShownWeights shown(weights);
    // Running averages over each process's own share differ; evaluate those that are saved.
    for (const Parameter& buffer : model.parameters().buffers()) group.broadcast(buffer.value);
    const Metrics found =
        task.metrics(evaluate(task, model, *valid_set, computed_tokens(config), config.label_smoothing, group));
    for (const auto& [name, value] : found)
      point.metrics.set(name == "loss" || name == "nll" ? "valid_" + name : name, value);
  }

  /// What an evaluation is worth by train.best_metric.
  struct Rank {
    bool best = false;             // better than all before
    bool one_of_the_best = false;  // among the train.keep_best best
  };

  /// Compares this step's value of train.best_metric with those before. Ends the run if there has been no improvement
  /// for too long.
  Rank judge() {
    const double value = point.metrics.get(best.name).value_or(NAN);
    Rank rank{std::isfinite(value) && (!state.best || best.is_better(value, *state.best)), false};
    if (rank.best) {
      state.best = value;
      state.best_step = state.step;
      state.validations_since_best = 0;
    } else {
      ++state.validations_since_best;
    }
    if (out_of_patience()) state.complete = true;
    if (config.keep_best > 1 && std::isfinite(value)) {
      auto& list = state.best_list;
      const auto place =
          std::find_if(list.begin(), list.end(), [&](const auto& each) { return best.is_better(value, each.second); });
      rank.one_of_the_best = place - list.begin() < config.keep_best;
      if (rank.one_of_the_best) list.insert(place, {state.step, value});
      if (std::ssize(list) > config.keep_best) list.pop_back();
    }
    return rank;
  }

  void report(const Trainer& trainer, const TrainHooks& hooks, const Rank& rank) {
    if (rank.one_of_the_best && hooks.one_of_the_best) hooks.one_of_the_best(trainer);
    if (rank.best && hooks.best) hooks.best(trainer);
  }

  /// Computes the slow metrics of a step whose point waits for them, and hands it out. The processes agree on the
  /// result.
  void finish_pending(const Trainer& trainer, const TrainHooks& hooks) {
    point = point_from_json(state.pending);
    state.pending = nullptr;
    score_now();
    const Rank rank = best.is_slow ? judge() : Rank{};
    publish_point(hooks);
    report(trainer, hooks, rank);
  }

  void score_now() {
    if (group.rank() == 0) point.metrics.set(score());
    if (!best.is_slow) return;
    const std::optional<double> own = point.metrics.get(best.name);  // every process decides by the value of the first
    point.metrics.set(best.name, group.sums({own.value_or(0.0)})[0]);
  }

  [[nodiscard]] Metrics score() {
    const ShownWeights shown(weights);
    return task.score(model, "valid");
  }

  [[nodiscard]] bool due(int64_t every) const { return every > 0 && state.step % every == 0; }

  [[nodiscard]] int64_t expected_steps() const {
    const auto steps = (source.plan().size() + config.accumulate - 1) / config.accumulate;  // of an epoch
    return config.epochs > 0 ? std::min(config.steps, config.epochs * steps) : config.steps;
  }

  /// The run in its current state, for the watches.
  [[nodiscard]] WatchedRun seen() {
    const int64_t last = std::max<int64_t>(state.step, 1);
    const double rate = rate_of(last);
    return {model,      task,       config,
            *optimizer, *train_set, watches.batches(),
            state.step, rate,       parameter_steps(settings, last, rate)};
  }

  /// Measures what is watched, if it is due.
  void watch_now(const TrainHooks& hooks) {
    if (!watches.due(state.step)) return;
    watched.push_back(watches.measure(seen()));
    if (hooks.watched) hooks.watched(watched.back());
  }

  /// What follows a step, when due: validation, slower metrics, a point, a checkpoint. `stopping` may become true.
  void after_step(const Trainer& trainer, const TrainHooks& hooks, bool& stopping) {
    Rank rank;
    const bool validating = valid_set && (due(config.validate_every) || state.complete);
    if (validating) validate_now();
    if (validating && !best.is_slow) rank = judge();
    const bool scoring = valid_set && (due(config.score_every) || (state.complete && config.score_every >= 0));
    if (scoring && (state.complete || stopping) && has_slow_metrics(task)) {
      // Slow metrics may take longer than somebody waits for the end: the step is saved without them first.
      close_point();
      settle(hooks);
      report(trainer, hooks, rank);
      state.pending = to_json(point);
      save_to(trainer, hooks);
      stopping = group.any(stopping || (hooks.stop && hooks.stop()));
      if (stopping) return;
      finish_pending(trainer, hooks);
      save_to(trainer, hooks);
      return;
    }
    if (scoring) score_now();
    if (scoring && best.is_slow) rank = judge();
    if (state.step == 1 || due(config.log_every) || validating || scoring || state.complete) add_point(hooks);
    const bool saving = due(config.checkpoint_every) || due(config.keep_every) || state.complete || stopping;
    if (saving || rank.best || rank.one_of_the_best) settle(hooks);
    report(trainer, hooks, rank);
    if (saving) save_to(trainer, hooks);
  }

  /// Before something is saved: the judge sees the last update, and a rollback may return to here.
  void settle(const TrainHooks& hooks) {
    before_saving();
    see_updates(ops::read(moved.square_norms));
    if (due(config.checkpoint_every)) mark(hooks);
  }

  void save_to(const Trainer& trainer, const TrainHooks& hooks) const {
    if (hooks.checkpoint) hooks.checkpoint(trainer);
  }

  /// state.json, and the reverse.
  [[nodiscard]] Json state_document() const {
    Json json = to_json(state, best.name);
    json["trouble"] = trouble.state();
    return json;
  }
  void take_state(const Json& json, const std::string& origin) {
    state = state_from_json(json, best.name, origin);
    try {
      trouble.load_state(json.value("trouble", Json()));
    } catch (const nlohmann::json::exception& error) {
      throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
    }
    moved = {};
  }

  [[nodiscard]] TrainResult result(const std::string& outcome) const {
    TrainResult result{outcome, state.step, history, {}, {}, state.best_step, state.seconds, watched};
    if (best.name == "valid_nll") result.best_valid_nll = state.best;
    if (best.name != "valid_nll" && state.best) result.best_value = {best.name, *state.best};
    for (const TrainPoint& each : history) result.metrics.set(each.metrics);
    result.troubles = trouble.records();
    result.diagnosis = diagnosis;
    return result;
  }

  Model& model;
  const Task& task;
  Group group;  // this process alone, until it joins others
  TrainConfig config;
  std::unique_ptr<Dataset> train_set;
  StepSource source;                   // of train_set
  std::unique_ptr<Dataset> valid_set;  // null if there is none
  Schedule schedule;
  std::vector<ParameterSettings> settings;  // one per parameter
  std::unique_ptr<Optimizer> optimizer;
  EvaluatedWeights weights;
  std::vector<Tensor> values;
  std::unique_ptr<GradientExchange> exchange;  // with the other processes
  std::unique_ptr<GradientExchange> alone;     // of this process, without any
  FlopCounter flops;
  BestMetric best;
  RunWatches watches;
  UpdateNorms update_norms;
  TroubleJudge trouble;
  State state;
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  TrainPoint point;          // the point being accumulated
  RunningMean running_loss;  // the loss of a single batch is too noisy to show
  double shown_loss = 0;
  RunningMean running_nll;
  double shown_nll = 0;
  double peak_rate = 0;  // in FLOP/s; 0: not measured

  /// What the last step's update came to, until the judge sees it.
  struct Moved {
    int64_t step = 0;
    double learning_rate = 0;
    std::vector<ops::Number> square_norms;
  } moved;

  std::vector<std::string> diagnosis;  // of a run that diverged

  /// What a rollback without files returns to.
  struct Marked {
    Tensor parameters;
    std::vector<Tensor> buffers;
    NamedTensors optimizer;
    Json state;
    Tensor average;  // of the weights; undefined if there is none
  } marked;

  /// Training time since the last point.
  struct Timed {
    int64_t steps = 0;
    int64_t tokens = 0;
    double flops = 0;
    double seconds = 0;
    double data_seconds = 0;
    double exchange_seconds = 0;
    int64_t exchange_bytes = 0;
  } timed;
};

Trainer::Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch)
    : implementation_(std::make_unique<Implementation>(model, config, task, watch)) {}
Trainer::~Trainer() = default;

TrainResult Trainer::run(const TrainHooks& hooks) {
  Implementation& self = *implementation_;
  State& state = self.state;
  const int64_t first = state.step;
  self.weights.hide();
  std::unique_ptr<Progress> progress;
  if (!state.complete && self.group.any(self.group.rank() == 0 && hooks.dry_pass)) self.dry_pass();
  if (!hooks.progress.empty())
    progress = std::make_unique<Progress>(hooks.progress, self.expected_steps(), Progress::Unit::steps, first);
  if (hooks.peak_rate) self.peak_rate = hooks.peak_rate();
  if (first == 0 && !state.complete) {
    const Stopwatch watch;
    self.watch_now(hooks);
    state.seconds += watch.seconds();
  }
  if (!state.pending.is_null()) {
    const Stopwatch watch;
    self.finish_pending(*this, hooks);
    self.before_saving();
    state.seconds += watch.seconds();
    self.save_to(*this, hooks);
  }
  if (self.config.trouble.rolls_back() && (first == 0 || !hooks.go_back)) {
    self.mark(hooks);
    self.before_saving();
    if (hooks.checkpoint && first == 0) hooks.checkpoint(*this);
  }
  while (!state.complete) {
    const Stopwatch watch;
    const ExchangeCost cost_before = self.exchanged();
    const double waited_before = self.source.waited();
    Implementation::Ended ended{};
    self.within_memory(fmt::format("step {}", state.step + 1), self.window(), [&] { ended = self.step(hooks); });
    const double elapsed = watch.seconds();
    ++self.timed.steps;
    self.timed.seconds += elapsed;
    self.timed.data_seconds += self.source.waited() - waited_before;
    self.timed.exchange_seconds += self.exchanged().seconds - cost_before.seconds;
    self.timed.exchange_bytes += self.exchanged().bytes - cost_before.bytes;
    if (ended == Implementation::Ended::goes_back) {
      if (self.go_back(*this, hooks)) continue;
      ended = Implementation::Ended::diverged;
    }
    if (ended == Implementation::Ended::diverged) {
      state.seconds += elapsed;
      self.add_point(hooks);
      return self.result("diverged");
    }
    if (progress) progress->update(state.step, progress_parts(self.status()));
    bool stopping = self.group.any(hooks.stop && hooks.stop());
    // Counted before the files are written, so that a resumed run knows it.
    state.seconds += elapsed;
    const Stopwatch evaluation;
    self.watch_now(hooks);
    self.after_step(*this, hooks, stopping);
    state.seconds += evaluation.seconds();
    if (stopping && (!state.complete || !state.pending.is_null())) {
      self.weights.show();
      return self.result("stopped");
    }
  }
  self.weights.show();
  return self.result("finished");
}

void Trainer::save(const std::filesystem::path& directory) const { write_snapshot(snapshot(), directory); }

Snapshot Trainer::snapshot() const {
  const Implementation& self = *implementation_;
  Snapshot snapshot{self.state.step, {}, self.state_document()};
  snapshot.files.push_back({"model.safetensors", self.weights.evaluated(), {}});
  if (self.weights.differ()) snapshot.files.push_back({"trained.safetensors", self.weights.trained(), {}});
  snapshot.files.push_back({"optimizer.safetensors", self.optimizer->state(), {{"optimizer", self.config.optimizer}}});
  if (NamedTensors watch = self.watches.state(); !watch.empty())
    snapshot.files.push_back({"watch.safetensors", std::move(watch), {}});
  return snapshot;
}

int64_t Trainer::best_step() const { return implementation_->state.best_step; }

std::vector<int64_t> Trainer::best_steps() const {
  std::vector<int64_t> steps;
  for (const auto& [step, value] : implementation_->state.best_list) steps.push_back(step);
  return steps;
}

void Trainer::load(const std::filesystem::path& directory) {
  Implementation& self = *implementation_;
  const auto model = directory / "model.safetensors";
  const auto optimizer = directory / "optimizer.safetensors";
  const auto state = directory / "state.json";
  load_parameters(self.model.parameters(), load_safetensors(model), model.string());
  self.weights.load_trained(directory / "trained.safetensors");
  self.optimizer->load_state(load_safetensors(optimizer), optimizer.string());
  if (const auto watch = directory / "watch.safetensors"; std::filesystem::exists(watch))
    self.watches.load_state(load_safetensors(watch));
  self.take_state(read_sealed(state), state.string());
  self.state.complete = self.at_end() || self.out_of_patience();  // by the current limits, which may have been raised
  self.source.go_to(self.state.epoch);
  if (self.state.batch >= self.source.plan().size()) {
    throw Error(fmt::format("{}: batch {} of an epoch with {} batches", state.string(), self.state.batch,
                            self.source.plan().size()),
                "the data have changed since the run started");
  }
}

void Trainer::join(const Group& group) {
  Implementation& self = *implementation_;
  self.group = group;
  self.exchange = self.make_exchange(group);
  group.broadcast(self.model.parameters().flat());
  for (const Parameter& buffer : self.model.parameters().buffers()) group.broadcast(buffer.value);
  NamedTensors optimizer;
  for (const auto& [name, tensor] : self.optimizer->state()) {
    optimizer.emplace_back(name, tensor.contiguous().clone());
    group.broadcast(optimizer.back().second);
  }
  self.optimizer->load_state(optimizer, "rank 0");
  if (auto* sharded = dynamic_cast<ShardedOptimizer*>(self.optimizer.get())) sharded->share(group);
  self.take_state(Json::parse(group.broadcast(self.state_document().dump())), "rank 0");
  if (const Tensor average = self.state.step > 0 ? self.weights.received() : Tensor(); average.defined())
    group.broadcast(average);
  self.source.go_to(self.state.epoch);
}

void Trainer::leave() {
  implementation_->exchange = implementation_->make_exchange({});
  implementation_->group.leave();
}

void Trainer::set_history(std::vector<TrainPoint> history, std::vector<WatchRecord> watched) {
  std::erase_if(history, [this](const TrainPoint& point) { return point.step > step(); });
  std::erase_if(watched, [this](const WatchRecord& record) { return record.step > step(); });
  implementation_->history = std::move(history);
  implementation_->watched = std::move(watched);
}

const std::vector<TrainPoint>& Trainer::history() const { return implementation_->history; }
const std::vector<WatchRecord>& Trainer::watched() const { return implementation_->watched; }
const std::vector<TroubleRecord>& Trainer::troubles() const { return implementation_->trouble.records(); }
int64_t Trainer::step() const { return implementation_->state.step; }
int64_t Trainer::rollback_step() const { return implementation_->trouble.anchor(); }
const Model& Trainer::model() const { return implementation_->model; }

TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks,
                  const WatchConfig& watch) {
  return Trainer(model, config, task, watch).run(hooks);
}

}  // namespace plumb
