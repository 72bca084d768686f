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
#include "plumb/ops/precision.h"
#include "plumb/optim/groups.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"
#include "plumb/train/diagnosis.h"
#include "plumb/train/inspection.h"
#include "plumb/train/trouble_judge.h"
#include "plumb/train/update_norms.h"

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
        watches(watch, learned, given.batch_tokens),
        update_norms(trained.parameters()),
        trouble(given.trouble, update_norms.names(), divergence_limit(), kSettledStep) {
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
  };
  [[nodiscard]] Result forward(int64_t number, Inspection* inspection = nullptr) const {
    const std::vector<int64_t>& examples = plan[static_cast<size_t>(state.batch)];
    const uint64_t seed = static_cast<uint64_t>(config.seed) + (static_cast<uint64_t>(group.rank()) << 32U);
    ForwardContext context(model.config().dropout, seed, number, config.synchronize_norms ? group : Group());
    std::vector<int64_t> own = share(examples);
    const bool idle = own.empty();  // fewer examples than processes: one is repeated with weight 0
    if (idle) own.push_back(examples.front());
    const Batch batch = train_set->batch(own);
    if (inspection != nullptr) inspection->watch(context, batch);
    const double weight = group.sums({idle ? 0.0 : batch.weight()})[0];
    const double scale = idle || weight == 0 ? 0.0 : 1.0 / weight;
    const Loss loss = task.loss(model, batch, {config.label_smoothing, scale, false}, context);
    if (idle) return {loss.value, {}, weight, 0};
    return {loss.value, loss.nll, weight, batch.tokens()};
  }

  [[nodiscard]] std::vector<Tensor> gradient_of(const Tensor& value) const {
    return group.sum_coalesced(gradients({value}, values, {}));
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
    const Result found = forward(number);
    const std::vector<Tensor> gradient = gradient_of(found.loss);
    point.learning_rate = rate_of(number);
    const std::vector<ParameterStep> steps = parameter_steps(settings, number, point.learning_rate);
    // The one place in a step that waits for the device.
    std::vector<ops::Number> asked = {ops::Number(found.loss), found.nll, square_norm(gradient, steps)};
    asked.insert(asked.end(), moved.square_norms.begin(), moved.square_norms.end());
    const std::vector<double> read = ops::read(asked);
    see_updates({read.begin() + 3, read.end()});
    const std::vector<double> sums = group.sums({read[0], read[1], static_cast<double>(found.tokens)});
    const StepNumbers numbers{number, sums[0], std::sqrt(read[2]), point.learning_rate};
    point.step = number;
    point.epoch = state.epoch;
    point.gradient_norm = numbers.gradient_norm;
    timed.tokens += static_cast<int64_t>(sums[2]);
    const StepJudgment judgment = trouble.judge(numbers);
    if (judgment.action != StepJudgment::Action::skip) {
      shown_loss = running_loss.add(numbers.loss);
      state.loss += numbers.loss * found.weight;
      state.nll += sums[1];
      state.weight += found.weight;
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
    if (watches.due(number)) watches.before_step(seen());
    if (trouble.watches_spikes()) update_norms.before_step();
    optimizer->step(gradient, steps, clip_scale(numbers.gradient_norm, config.clip_norm));
    std::vector<bool> frozen;
    for (const ParameterStep& each : steps) frozen.push_back(each.frozen);
    model.constrain(frozen);
    if (trouble.watches_spikes()) moved = {number, numbers.learning_rate, update_norms.square_norms()};
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
    marked = {model.parameters().flat().detach().clone(), copies_of_buffers(model.parameters()), {}, state_document()};
    for (const auto& [name, tensor] : optimizer->state()) marked.optimizer.emplace_back(name, tensor.clone());
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
    const Result found = forward(number, inspection);
    std::vector<Tensor> gradient = gradient_of(found.loss);
    const double norm = std::sqrt(square_norm(gradient, parameter_steps(settings, number, 0)));
    return {group.sums({ops::Number(found.loss)})[0], norm, std::move(gradient)};
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

  /// Closes the span since the last point.
  void add_point(const TrainHooks& hooks) {
    point.loss = state.loss / state.weight;  // NaN if there was none
    point.nll = state.nll / state.weight;
    if (trouble.skipped() > 0) point.skipped_steps = static_cast<double>(trouble.skipped());
    point.tokens_per_second = timed.seconds > 0 ? static_cast<double>(timed.tokens) / timed.seconds : 0;
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

  /// What follows a step, when due: validation, slower metrics, a point, a checkpoint.
  void after_step(const Trainer& trainer, const TrainHooks& hooks, bool stopping) {
    bool best = false;
    const bool validating = valid_set && (due(config.validate_every) || state.complete);
    if (validating) best = validate_now();
    const bool scoring = valid_set && (due(config.score_every) || (state.complete && config.score_every >= 0));
    if (scoring && group.rank() == 0) point.metrics.set(task.score(model, "valid"));
    if (state.step == 1 || due(config.log_every) || validating || scoring || state.complete) add_point(hooks);
    const bool saving = hooks.checkpoint && (due(config.checkpoint_every) || state.complete || stopping);
    if (saving || (best && hooks.best) || due(config.checkpoint_every))
      see_updates(ops::read(moved.square_norms));  // part of a checkpoint
    if (due(config.checkpoint_every)) mark(hooks);
    if (best && hooks.best) hooks.best(trainer);
    if (saving) hooks.checkpoint(trainer);
  }

  /// state.json, and the reverse.
  [[nodiscard]] Json state_document() const {
    Json json = to_json(state);
    json["trouble"] = trouble.state();
    return json;
  }
  void take_state(const Json& json, const std::string& origin) {
    state = state_from_json(json, origin);
    try {
      trouble.load_state(json.value("trouble", Json()));
    } catch (const nlohmann::json::exception& error) {
      throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
    }
    moved = {};
  }

  [[nodiscard]] TrainResult result(const std::string& outcome) const {
    TrainResult result{outcome, state.step, history, {}, state.best_valid_nll, state.best_step, state.seconds, watched};
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
  std::vector<ExampleCost> costs;      // of train_set
  std::unique_ptr<Dataset> valid_set;  // null if there is none
  Schedule schedule;
  std::vector<ParameterSettings> settings;  // one per parameter
  std::unique_ptr<Optimizer> optimizer;
  std::vector<Tensor> values;
  RunWatches watches;
  UpdateNorms update_norms;
  TroubleJudge trouble;
  State state;
  std::vector<std::vector<int64_t>> plan;  // for state.epoch
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  TrainPoint point;          // the point being accumulated
  RunningMean running_loss;  // the loss of a single batch is too noisy to show
  double shown_loss = 0;

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
  } marked;

  /// Training time since the last point.
  struct Timed {
    int64_t steps = 0;
    int64_t tokens = 0;
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
  if (!hooks.progress.empty()) progress = std::make_unique<Progress>(hooks.progress, self.expected_steps() - first);
  if (first == 0 && !state.complete) {
    const Stopwatch watch;
    self.watch_now(hooks);
    state.seconds += watch.seconds();
  }
  if (self.config.trouble.rolls_back() && (first == 0 || !hooks.go_back)) {
    self.mark(hooks);
    if (hooks.checkpoint && first == 0) hooks.checkpoint(*this);
  }
  while (!state.complete) {
    const Stopwatch watch;
    const ExchangeCost cost_before = self.group.cost();
    Implementation::Ended ended = self.step(hooks);
    const double elapsed = watch.seconds();
    ++self.timed.steps;
    self.timed.seconds += elapsed;
    self.timed.exchange_seconds += self.group.cost().seconds - cost_before.seconds;
    self.timed.exchange_bytes += self.group.cost().bytes - cost_before.bytes;
    if (ended == Implementation::Ended::goes_back) {
      if (self.go_back(*this, hooks)) continue;
      ended = Implementation::Ended::diverged;
    }
    if (ended == Implementation::Ended::diverged) {
      state.seconds += elapsed;
      self.add_point(hooks);
      return self.result("diverged");
    }
    if (progress) {
      const double rate = static_cast<double>(self.timed.tokens) / self.timed.seconds;
      const std::string step = first > 0 ? fmt::format("step {}  ", state.step) : "";
      progress->update(state.step - first, fmt::format("{}loss {:.3f}  lr {:.2e}  {:.0f} tok/s", step, self.shown_loss,
                                                       self.point.learning_rate, rate));
    }
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
  write_json(directory / "state.json", self.state_document());
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
  self.take_state(read_json(state), state.string());
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
  self.take_state(Json::parse(group.broadcast(self.state_document().dump())), "rank 0");
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
const std::vector<TroubleRecord>& Trainer::troubles() const { return implementation_->trouble.records(); }
int64_t Trainer::step() const { return implementation_->state.step; }
int64_t Trainer::rollback_step() const { return implementation_->trouble.anchor(); }
const Model& Trainer::model() const { return implementation_->model; }

TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks,
                  const WatchConfig& watch) {
  return Trainer(model, config, task, watch).run(hooks);
}

}  // namespace plumb
