#include "plumb/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/running_mean.h"
#include "plumb/base/timing.h"
#include "plumb/data/batches.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/flops.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/train/progress_line.h"

namespace plumb {
namespace {

/// After this step, a loss far above that of a uniform guess is divergence, not initialization.
constexpr int64_t kSettledStep = 20;

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
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  int64_t validations_since_best = 0;
  bool complete = false;  // nothing is left to train
  double seconds = 0;
};

Json to_json(const State& state) {
  Json json = make_document("state", 1);
  json["step"] = state.step;
  json["epoch"] = state.epoch;
  json["batch"] = state.batch;
  json["loss_sum"] = state.loss;
  json["nll_sum"] = state.nll;
  json["weight"] = state.weight;
  if (state.tokens) json["tokens"] = *state.tokens;
  if (state.best_valid_nll) json["best_valid_nll"] = *state.best_valid_nll;
  json["best_step"] = state.best_step;
  json["validations_since_best"] = state.validations_since_best;
  json["complete"] = state.complete;
  json["seconds"] = state.seconds;
  return json;
}

State state_from_json(const Json& json, const std::string& origin) {
  try {
    State state;
    state.step = json.at("step");
    state.epoch = json.at("epoch");
    state.batch = json.at("batch");
    state.loss = json.at("loss_sum");
    state.nll = json.at("nll_sum");
    state.weight = json.at("weight");
    state.tokens = json.contains("tokens") ? std::optional(json["tokens"].get<int64_t>()) : std::nullopt;
    if (json.contains("best_valid_nll")) state.best_valid_nll = json["best_valid_nll"].get<double>();
    state.best_step = json.at("best_step");
    state.validations_since_best = json.at("validations_since_best");
    state.complete = json.at("complete");
    state.seconds = json.at("seconds");
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
  }
}

}  // namespace

struct Trainer::Implementation {
  Implementation(Model& trained, const TrainConfig& given, const Task& learned, const WatchConfig& watch)
      : model(trained),
        task(learned),
        config(given),
        train_set(learned.dataset("train")),
        costs(train_set->costs()),
        schedule(make_schedule(given, trained.config().d_model)),
        settings(parameter_settings(trained.parameters(), given.groups, given.weight_decay)),
        optimizer(make_optimizer(given.optimizer, trained.parameters(), given.options)),
        values(trained.parameters().values()),
        flops(trained),
        watches(watch, learned, given.batch_tokens) {
    validate(config);
    if (task.data().has_split("valid")) valid_set = task.dataset("valid");
    if (valid_set && valid_set->size() == 0) valid_set = nullptr;
    if (train_set->size() == 0) throw Error("the training split is empty", "prepare the data again");
    ModelConfig fitting = model.config();
    task.complete(fitting);  // throws if the model does not match the data
    plan = make_plan();
    for (const std::string& line : settings_summary(model.parameters(), settings)) say(line);
  }

  [[nodiscard]] std::vector<std::vector<int64_t>> make_plan() const {
    return plan_batches(costs, config.batch_tokens, static_cast<uint64_t>(config.seed), state.epoch);
  }

  /// This process's examples of a batch. Neighbors are of similar length, so the shares are of similar size.
  [[nodiscard]] std::vector<int64_t> share(const std::vector<int64_t>& examples) const {
    std::vector<int64_t> own;
    for (auto i = static_cast<size_t>(group.rank()); i < examples.size(); i += static_cast<size_t>(group.size()))
      own.push_back(examples[i]);
    return own;
  }

  /// This process's part of the loss of the current batch, which the device may still be computing.
  struct Result {
    Tensor loss;         // part of the mean over labels
    ops::Number nll;     // summed over its labels
    double weight = 0;   // total weight of the labels of all processes
    int64_t tokens = 0;  // of this process; see Batch::tokens
    double flops = 0;    // of this process; see model/flops.h
  };
  [[nodiscard]] Result forward(int64_t number) const {
    const std::vector<int64_t>& examples = plan[static_cast<size_t>(state.batch)];
    const uint64_t seed = static_cast<uint64_t>(config.seed) + (static_cast<uint64_t>(group.rank()) << 32U);
    ForwardContext context(model.config().dropout, seed, number, config.synchronize_norms ? group : Group());
    std::vector<int64_t> own = share(examples);
    const bool idle = own.empty();  // fewer examples than processes: one is repeated with weight 0
    if (idle) own.push_back(examples.front());
    const Batch batch = train_set->batch(own);
    const double weight = group.sums({idle ? 0.0 : batch.weight()})[0];
    const double scale = idle || weight == 0 ? 0.0 : 1.0 / weight;
    const Loss loss = task.loss(model, batch, {config.label_smoothing, scale, false}, context);
    if (idle) return {loss.value, {}, weight, 0, 0};
    return {loss.value, loss.nll, weight, batch.tokens(), 3 * flops.forward(batch)};
  }

  [[nodiscard]] std::vector<Tensor> gradient_of(const Tensor& value) const {
    return group.sum_coalesced(gradients({value}, values, {}));
  }

  /// A loss above this is divergence, not initialization. With few classes, a confident mistake costs more than a
  /// guess.
  [[nodiscard]] double divergence_limit() const {
    return config.divergence_factor * std::max(std::log(static_cast<double>(model.outputs())), 2.0);
  }

  /// Forward and backward pass of one batch, and one step of the optimizer. Returns false, leaving the parameters
  /// unchanged, if the run has diverged.
  bool step() {
    const int64_t number = state.step + 1;
    ops::MatrixPrecision precision(ops::precision_of(config.precision));
    const ops::PrecisionGuard guard(precision);
    const Result found = forward(number);
    const std::vector<Tensor> gradient = gradient_of(found.loss);
    point.learning_rate = schedule(number);
    const std::vector<ParameterStep> steps = parameter_steps(settings, number, point.learning_rate);
    // The one place in a step that waits for the device.
    const std::vector<double> read = ops::read({ops::Number(found.loss), found.nll, square_norm(gradient, steps)});
    const std::vector<double> sums = group.sums({read[0], read[1], static_cast<double>(found.tokens)});
    const double value = sums[0];
    const double norm = std::sqrt(read[2]);
    point.step = number;
    point.epoch = state.epoch;
    shown_loss = running_loss.add(value);
    shown_nll = running_nll.add(sums[1] / std::max(found.weight, 1.0));
    state.loss += value * found.weight;
    state.nll += sums[1];
    state.weight += found.weight;
    timed.tokens += static_cast<int64_t>(sums[2]);
    timed.flops += found.flops;
    if (state.tokens) *state.tokens += static_cast<int64_t>(sums[2]);
    const bool judged = config.divergence_factor > 0 && number > kSettledStep;
    if (!std::isfinite(value) || (judged && value > divergence_limit())) return false;
    point.gradient_norm = norm;
    if (!std::isfinite(norm)) return false;
    if (watches.due(number)) {
      WatchedRun run = seen();
      run.gradient = gradient;
      watches.before_step(run);
    }
    optimizer->step(gradient, steps, clip_scale(norm, config.clip_norm));
    std::vector<bool> frozen;
    for (const ParameterStep& each : steps) frozen.push_back(each.frozen);
    model.constrain(frozen);
    advance();
    return true;
  }

  void advance() {
    ++state.step;
    if (++state.batch == static_cast<int64_t>(plan.size())) {
      state.batch = 0;
      ++state.epoch;
      plan = make_plan();
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
    return {point.epoch,         shown_loss,          shown_nll,
            point.learning_rate, point.gradient_norm, static_cast<double>(timed.tokens) / timed.seconds,
            ceiling_fraction()};
  }

  /// Closes the span since the last point.
  void add_point(const TrainHooks& hooks) {
    const double weight = state.weight > 0 ? state.weight : 1;
    point.loss = state.loss / weight;
    point.nll = state.nll / weight;
    point.tokens_per_second = timed.seconds > 0 ? static_cast<double>(timed.tokens) / timed.seconds : 0;
    point.tokens = state.tokens;
    point.ceiling_fraction = ceiling_fraction();
    if (timed.exchange_bytes > 0) {
      point.exchange_seconds = timed.exchange_seconds / static_cast<double>(timed.steps);
      point.exchange_bytes = static_cast<double>(timed.exchange_bytes) / static_cast<double>(timed.steps);
    }
    state.loss = state.nll = state.weight = 0;
    timed = {};
    history.push_back(point);
    if (hooks.point) hooks.point(point);
    point = {};
  }

  /// Returns whether this validation is the best so far. Ends the run if there has been no improvement for too long.
  bool validate_now() {
    // Running averages over each process's own share differ; evaluate those that are saved.
    for (const Parameter& buffer : model.parameters().buffers()) group.broadcast(buffer.value);
    const Metrics found =
        task.metrics(evaluate(task, model, *valid_set, config.batch_tokens, config.label_smoothing, group));
    for (const auto& [name, value] : found)
      point.metrics.set(name == "loss" || name == "nll" ? "valid_" + name : name, value);
    const double nll = found.get("nll").value_or(NAN);
    const bool best = std::isfinite(nll) && (!state.best_valid_nll || nll < *state.best_valid_nll);
    if (best) {
      state.best_valid_nll = nll;
      state.best_step = state.step;
      state.validations_since_best = 0;
    } else {
      ++state.validations_since_best;
    }
    if (out_of_patience()) state.complete = true;
    return best;
  }

  [[nodiscard]] bool due(int64_t every) const { return every > 0 && state.step % every == 0; }

  [[nodiscard]] int64_t expected_steps() const {
    const auto batches = static_cast<int64_t>(plan.size());
    return config.epochs > 0 ? std::min(config.steps, config.epochs * batches) : config.steps;
  }

  /// The run in its current state, for the watches.
  [[nodiscard]] WatchedRun seen() {
    const int64_t last = std::max<int64_t>(state.step, 1);
    const double rate = schedule(last);
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

  /// What follows a step, when due: validation, slower metrics, a point, a checkpoint.
  void after_step(const Trainer& trainer, const TrainHooks& hooks, bool stopping) {
    bool best = false;
    const bool validating = valid_set && (due(config.validate_every) || state.complete);
    if (validating) best = validate_now();
    const bool scoring = valid_set && (due(config.score_every) || (state.complete && config.score_every >= 0));
    if (scoring && group.rank() == 0) point.metrics.set(task.score(model, "valid"));
    if (state.step == 1 || due(config.log_every) || validating || scoring || state.complete) add_point(hooks);
    if (best && hooks.best) hooks.best(trainer);
    if (hooks.checkpoint && (due(config.checkpoint_every) || state.complete || stopping)) hooks.checkpoint(trainer);
  }

  [[nodiscard]] TrainResult result(const std::string& outcome) const {
    TrainResult result{outcome, state.step, history, {}, state.best_valid_nll, state.best_step, state.seconds, watched};
    for (const TrainPoint& each : history) result.metrics.set(each.metrics);
    return result;
  }

  Model& model;
  const Task& task;
  Group group;  // this process alone, until it joins others
  TrainConfig config;
  std::unique_ptr<Dataset> train_set;
  std::vector<ExampleCost> costs;      // of train_set
  std::unique_ptr<Dataset> valid_set;  // null if there is none
  Schedule schedule;
  std::vector<ParameterSettings> settings;  // one per parameter
  std::unique_ptr<Optimizer> optimizer;
  std::vector<Tensor> values;
  FlopCounter flops;
  RunWatches watches;
  State state;
  std::vector<std::vector<int64_t>> plan;  // for state.epoch
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  TrainPoint point;          // the point being accumulated
  RunningMean running_loss;  // the loss of a single batch is too noisy to show
  double shown_loss = 0;
  RunningMean running_nll;
  double shown_nll = 0;
  double peak_rate = 0;  // in FLOP/s; 0: not measured

  /// Training time since the last point.
  struct Timed {
    int64_t steps = 0;
    int64_t tokens = 0;
    double flops = 0;
    double seconds = 0;
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
  std::unique_ptr<Progress> progress;
  if (!hooks.progress.empty())
    progress = std::make_unique<Progress>(hooks.progress, self.expected_steps(), Progress::Unit::steps, first);
  if (hooks.peak_rate) self.peak_rate = hooks.peak_rate();
  if (first == 0 && !state.complete) {
    const Stopwatch watch;
    self.watch_now(hooks);
    state.seconds += watch.seconds();
  }
  while (!state.complete) {
    const Stopwatch watch;
    const ExchangeCost cost_before = self.group.cost();
    const bool alive = self.step();
    const double elapsed = watch.seconds();
    ++self.timed.steps;
    self.timed.seconds += elapsed;
    self.timed.exchange_seconds += self.group.cost().seconds - cost_before.seconds;
    self.timed.exchange_bytes += self.group.cost().bytes - cost_before.bytes;
    if (!alive) {
      state.seconds += elapsed;
      self.add_point(hooks);
      return self.result("diverged");
    }
    if (progress) progress->update(state.step, progress_parts(self.status()));
    const bool stopping = self.group.any(hooks.stop && hooks.stop());
    // Counted before the files are written, so that a resumed run knows it.
    state.seconds += elapsed;
    const Stopwatch evaluation;
    self.watch_now(hooks);
    self.after_step(*this, hooks, stopping);
    state.seconds += evaluation.seconds();
    if (stopping && !state.complete) return self.result("stopped");
  }
  return self.result("finished");
}

void Trainer::save(const std::filesystem::path& directory) const {
  const Implementation& self = *implementation_;
  save_safetensors(directory / "model.safetensors", named_values(self.model.parameters()));
  save_safetensors(directory / "optimizer.safetensors", self.optimizer->state(),
                   {{"optimizer", self.config.optimizer}});
  if (const NamedTensors watch = self.watches.state(); !watch.empty())
    save_safetensors(directory / "watch.safetensors", watch);
  write_json(directory / "state.json", to_json(self.state));
}

void Trainer::load(const std::filesystem::path& directory) {
  Implementation& self = *implementation_;
  const auto model = directory / "model.safetensors";
  const auto optimizer = directory / "optimizer.safetensors";
  const auto state = directory / "state.json";
  load_parameters(self.model.parameters(), load_safetensors(model), model.string());
  self.optimizer->load_state(load_safetensors(optimizer), optimizer.string());
  if (const auto watch = directory / "watch.safetensors"; std::filesystem::exists(watch))
    self.watches.load_state(load_safetensors(watch));
  self.state = state_from_json(read_json(state), state.string());
  self.state.complete = self.at_end() || self.out_of_patience();  // by the current limits, which may have been raised
  self.plan = self.make_plan();
  if (self.state.batch >= static_cast<int64_t>(self.plan.size())) {
    throw Error(
        fmt::format("{}: batch {} of an epoch with {} batches", state.string(), self.state.batch, self.plan.size()),
        "the data have changed since the run started");
  }
}

void Trainer::join(const Group& group) {
  Implementation& self = *implementation_;
  self.group = group;
  group.broadcast(self.model.parameters().flat());
  for (const Parameter& buffer : self.model.parameters().buffers()) group.broadcast(buffer.value);
  NamedTensors optimizer;
  for (const auto& [name, tensor] : self.optimizer->state()) {
    optimizer.emplace_back(name, tensor.contiguous().clone());
    group.broadcast(optimizer.back().second);
  }
  self.optimizer->load_state(optimizer, "rank 0");
  self.state = state_from_json(Json::parse(group.broadcast(to_json(self.state).dump())), "rank 0");
  self.plan = self.make_plan();
}

void Trainer::set_history(std::vector<TrainPoint> history, std::vector<WatchRecord> watched) {
  std::erase_if(history, [this](const TrainPoint& point) { return point.step > step(); });
  std::erase_if(watched, [this](const WatchRecord& record) { return record.step > step(); });
  implementation_->history = std::move(history);
  implementation_->watched = std::move(watched);
}

const std::vector<TrainPoint>& Trainer::history() const { return implementation_->history; }
const std::vector<WatchRecord>& Trainer::watched() const { return implementation_->watched; }
int64_t Trainer::step() const { return implementation_->state.step; }
const Model& Trainer::model() const { return implementation_->model; }

TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks,
                  const WatchConfig& watch) {
  return Trainer(model, config, task, watch).run(hooks);
}

}  // namespace plumb
