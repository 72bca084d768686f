#include "plumb/train/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/base/timing.h"
#include "plumb/data/batches.h"
#include "plumb/io/safetensors.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"
#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

/// From here on a loss far above that of a uniform guess is divergence, not initialization.
constexpr int64_t kSettledStep = 20;

/// Where a run stands: everything but the tensors that a resumed run needs. In state.json.
struct State {
  int64_t step = 0;   // steps done
  int64_t epoch = 0;  // of the next batch
  int64_t batch = 0;  // of the next batch, within the epoch
  // Sums over target tokens since the last point.
  double loss = 0;
  double nll = 0;
  int64_t tokens = 0;
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
  json["tokens"] = state.tokens;
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
    state.tokens = json.at("tokens");
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

Evaluation evaluate(Model& model, const ParallelSplit& split, int64_t batch_tokens, double label_smoothing,
                    const Group& group) {
  const at::NoGradGuard no_graph;
  Evaluation sum;
  int64_t number = 0;
  for (const auto& examples : plan_evaluation_batches(split, batch_tokens)) {
    if (number++ % group.size() != group.rank()) continue;
    ForwardContext context;
    const Loss loss = model.loss(make_batch(split, examples), {label_smoothing, 1.0, false}, context);
    sum.loss += loss.value.item<double>();
    sum.nll += loss.nll;
    sum.tokens += loss.tokens;
  }
  const std::vector<double> sums = group.sums({sum.loss, sum.nll, static_cast<double>(sum.tokens)});
  const double tokens = std::max(sums[2], 1.0);
  return {sums[0] / tokens, sums[1] / tokens, static_cast<int64_t>(sums[2])};
}

struct Trainer::Implementation {
  Implementation(Model& trained, const TrainConfig& given, const DataDirectory& data)
      : model(trained),
        config(given),
        train_split(data.split("train")),
        schedule(given.schedule, schedule_options(given, trained.config())),
        optimizer(optimizers().at(given.optimizer).make(trained.parameters(), optimizer_options(given))),
        values(trained.parameters().values()) {
    validate(config);
    if (data.has_split("valid") && data.split("valid").size() > 0) valid_split = data.split("valid");
    if (train_split.size() == 0) throw Error("the training split is empty", "prepare the data again");
    const auto fits = [](const char* side, int64_t vocabulary, int64_t model_vocabulary) {
      if (vocabulary <= model_vocabulary) return;
      throw Error(
          fmt::format("the data's {} vocabulary of {} does not fit the model's {}", side, vocabulary, model_vocabulary),
          "leave the model's vocabulary sizes 0 to take those of the data");
    };
    fits("source", data.source_vocabulary(), model.config().source_vocabulary);
    fits("target", data.target_vocabulary(), model.config().target_vocabulary);
    plan = make_plan();
  }

  [[nodiscard]] std::vector<std::vector<int64_t>> make_plan() const {
    return plan_batches(train_split, config.batch_tokens, static_cast<uint64_t>(config.seed), state.epoch);
  }

  /// This rank's pairs of a batch. Neighbors are of similar length, so the shares are of similar size.
  [[nodiscard]] std::vector<int64_t> share(const std::vector<int64_t>& examples) const {
    std::vector<int64_t> own;
    for (auto i = static_cast<size_t>(group.rank()); i < examples.size(); i += static_cast<size_t>(group.size()))
      own.push_back(examples[i]);
    return own;
  }

  /// The loss of the current batch, the same in all ranks.
  struct Result {
    double loss = 0;
    double nll = 0;      // summed over tokens
    int64_t tokens = 0;  // target tokens
    Tensor value;        // this rank's part of the loss
  };
  [[nodiscard]] Result forward(int64_t number) const {
    const std::vector<int64_t>& examples = plan[static_cast<size_t>(state.batch)];
    const uint64_t seed = static_cast<uint64_t>(config.seed) + (static_cast<uint64_t>(group.rank()) << 32U);
    ForwardContext context(model.config().dropout, seed, number, config.synchronize_norms ? group : Group());
    std::vector<int64_t> own = share(examples);
    const bool idle = own.empty();  // fewer pairs than ranks: one is repeated without weight
    if (idle) own.push_back(examples.front());
    const Batch batch = make_batch(train_split, own);
    const double tokens = group.sums({idle ? 0.0 : static_cast<double>(batch.labels.size())})[0];
    const Loss loss = model.loss(batch, {config.label_smoothing, idle ? 0.0 : 1.0 / tokens, false}, context);
    const std::vector<double> sums = group.sums({loss.value.item<double>(), idle ? 0.0 : loss.nll});
    return {sums[0], sums[1], static_cast<int64_t>(tokens), loss.value};
  }

  [[nodiscard]] std::vector<Tensor> gradient_of(const Tensor& value) const {
    return group.sum_coalesced(gradients({value}, values, {}));
  }

  /// One batch forward and back, one step of the optimizer. Returns false, with the parameters as they were, if the run
  /// has diverged.
  bool step() {
    const int64_t number = state.step + 1;
    ops::MatrixPrecision precision(ops::precision_of(config.precision));
    const ops::PrecisionGuard guard(precision);
    const Result found = forward(number);
    const double value = found.loss;
    point.step = number;
    point.epoch = state.epoch;
    point.learning_rate = schedule(number);
    last_loss = value;
    state.loss += value * static_cast<double>(found.tokens);
    state.nll += found.nll;
    state.tokens += found.tokens;
    const double limit = config.divergence_factor * std::log(static_cast<double>(model.config().target_vocabulary));
    if (!std::isfinite(value) || (config.divergence_factor > 0 && number > kSettledStep && value > limit)) return false;

    const std::vector<Tensor> gradient = gradient_of(found.value);
    point.gradient_norm = global_norm(gradient);
    if (!std::isfinite(point.gradient_norm)) return false;
    optimizer->step(gradient, point.learning_rate, clip_scale(point.gradient_norm, config.clip_norm));
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
    state.complete = state.step >= config.steps || (config.epochs > 0 && state.epoch >= config.epochs);
  }

  /// Closes the span since the last point.
  void add_point(const TrainHooks& hooks) {
    const auto tokens = static_cast<double>(std::max<int64_t>(state.tokens, 1));
    point.loss = state.loss / tokens;
    point.nll = state.nll / tokens;
    point.tokens_per_second = timed.seconds > 0 ? static_cast<double>(timed.tokens) / timed.seconds : 0;
    if (timed.exchange_bytes > 0) {
      point.exchange_seconds = timed.exchange_seconds / static_cast<double>(timed.steps);
      point.exchange_bytes = static_cast<double>(timed.exchange_bytes) / static_cast<double>(timed.steps);
    }
    state.loss = state.nll = 0;
    state.tokens = 0;
    timed = {};
    history.push_back(point);
    if (hooks.point) hooks.point(point);
    point = {};
  }

  /// Returns whether this validation is the best so far. Ends the run if it has been too long since the best.
  bool validate_now() {
    // Running averages over each rank's own share differ; what counts is what is saved.
    for (const Parameter& buffer : model.parameters().buffers()) group.broadcast(buffer.value);
    const Evaluation found = evaluate(model, *valid_split, config.batch_tokens, config.label_smoothing, group);
    point.valid_loss = found.loss;
    point.valid_nll = found.nll;
    const bool best = std::isfinite(found.nll) && (!state.best_valid_nll || found.nll < *state.best_valid_nll);
    if (best) {
      state.best_valid_nll = found.nll;
      state.best_step = state.step;
      state.validations_since_best = 0;
    } else if (++state.validations_since_best >= config.patience && config.patience > 0) {
      state.complete = true;
    }
    return best;
  }

  [[nodiscard]] bool due(int64_t every) const { return every > 0 && state.step % every == 0; }

  [[nodiscard]] int64_t expected_steps() const {
    const auto batches = static_cast<int64_t>(plan.size());
    return config.epochs > 0 ? std::min(config.steps, config.epochs * batches) : config.steps;
  }

  /// What follows a step: validation, BLEU, a point, a checkpoint, as they are due.
  void after_step(const Trainer& trainer, const TrainHooks& hooks, bool stopping) {
    bool best = false;
    const bool validating = valid_split && (due(config.validate_every) || state.complete);
    if (validating) best = validate_now();
    const bool scoring =
        valid_split && hooks.bleu && config.bleu_beam > 0 && (due(config.bleu_every) || state.complete);
    if (scoring) point.bleu = hooks.bleu(model);
    if (state.step == 1 || due(config.log_every) || validating || scoring || state.complete) add_point(hooks);
    if (best && hooks.best) hooks.best(trainer);
    if (hooks.checkpoint && (due(config.checkpoint_every) || state.complete || stopping)) hooks.checkpoint(trainer);
  }

  [[nodiscard]] TrainResult result(const std::string& outcome) const {
    TrainResult result{outcome, state.step, history, {}, {}, state.best_valid_nll, state.best_step, state.seconds};
    for (const TrainPoint& each : history) {
      if (each.valid_nll) result.valid_nll = each.valid_nll;
      if (each.bleu) result.bleu = each.bleu;
    }
    return result;
  }

  Model& model;
  Group group;
  TrainConfig config;
  ParallelSplit train_split;
  std::optional<ParallelSplit> valid_split;
  Schedule schedule;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<Tensor> values;
  State state;
  std::vector<std::vector<int64_t>> plan;  // of state.epoch
  std::vector<TrainPoint> history;
  TrainPoint point;  // the one in the making
  double last_loss = 0;

  /// What training took since the last point.
  struct Timed {
    int64_t steps = 0;
    int64_t tokens = 0;
    double seconds = 0;
    double exchange_seconds = 0;
    int64_t exchange_bytes = 0;
  } timed;
};

Trainer::Trainer(Model& model, const TrainConfig& config, const DataDirectory& data)
    : implementation_(std::make_unique<Implementation>(model, config, data)) {}
Trainer::~Trainer() = default;

TrainResult Trainer::run(const TrainHooks& hooks) {
  Implementation& self = *implementation_;
  State& state = self.state;
  const int64_t first = state.step;
  std::unique_ptr<Progress> progress;
  if (!hooks.progress.empty()) progress = std::make_unique<Progress>(hooks.progress, self.expected_steps() - first);
  double rate = 0;
  while (!state.complete) {
    const Stopwatch watch;
    const int64_t tokens_before = state.tokens;
    const ExchangeCost cost_before = self.group.cost();
    const bool alive = self.step();
    const double elapsed = watch.seconds();
    ++self.timed.steps;
    self.timed.seconds += elapsed;
    self.timed.tokens += state.tokens - tokens_before;
    self.timed.exchange_seconds += self.group.cost().seconds - cost_before.seconds;
    self.timed.exchange_bytes += self.group.cost().bytes - cost_before.bytes;
    if (!alive) {
      state.seconds += elapsed;
      self.add_point(hooks);
      return self.result("diverged");
    }
    rate = static_cast<double>(self.timed.tokens) / self.timed.seconds;
    if (progress) {
      progress->update(state.step - first, fmt::format("step {}  loss {:.3f}  lr {:.2e}  {:.0f} tok/s", state.step,
                                                       self.last_loss, self.point.learning_rate, rate));
    }
    const bool stopping = self.group.any(hooks.stop && hooks.stop());
    // Counted before the files are written, so that a resumed run knows it.
    state.seconds += elapsed;
    const Stopwatch evaluation;
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
  write_json(directory / "state.json", to_json(self.state));
}

void Trainer::load(const std::filesystem::path& directory) {
  Implementation& self = *implementation_;
  const auto model = directory / "model.safetensors";
  const auto optimizer = directory / "optimizer.safetensors";
  const auto state = directory / "state.json";
  load_parameters(self.model.parameters(), load_safetensors(model), model.string());
  self.optimizer->load_state(load_safetensors(optimizer), optimizer.string());
  self.state = state_from_json(read_json(state), state.string());
  self.plan = self.make_plan();
  if (self.state.batch >= static_cast<int64_t>(self.plan.size())) {
    throw Error(fmt::format("{}: batch {} of an epoch of {}", state.string(), self.state.batch, self.plan.size()),
                "the data have changed since the run began");
  }
}

void Trainer::join(Group group) {
  Implementation& self = *implementation_;
  self.group = std::move(group);
  self.group.broadcast(self.model.parameters().flat());
  for (const Parameter& buffer : self.model.parameters().buffers()) self.group.broadcast(buffer.value);
  NamedTensors optimizer;
  for (const auto& [name, tensor] : self.optimizer->state()) {
    optimizer.emplace_back(name, tensor.contiguous().clone());
    self.group.broadcast(optimizer.back().second);
  }
  self.optimizer->load_state(optimizer, "rank 0");
  self.state = state_from_json(Json::parse(self.group.broadcast(to_json(self.state).dump())), "rank 0");
  self.plan = self.make_plan();
}

void Trainer::set_history(std::vector<TrainPoint> history) {
  std::erase_if(history, [this](const TrainPoint& point) { return point.step > step(); });
  implementation_->history = std::move(history);
}

const std::vector<TrainPoint>& Trainer::history() const { return implementation_->history; }
int64_t Trainer::step() const { return implementation_->state.step; }
const Model& Trainer::model() const { return implementation_->model; }

TrainResult train(Model& model, const TrainConfig& config, const DataDirectory& data, const TrainHooks& hooks) {
  return Trainer(model, config, data).run(hooks);
}

}  // namespace plumb
