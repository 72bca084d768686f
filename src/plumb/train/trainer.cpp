#include "plumb/train/trainer.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"
#include "plumb/io/safetensors.h"
#include "plumb/optim/sharded.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/trainer_implementation.h"

namespace plumb {
namespace {

constexpr const char* kCarriedFile = "carried.safetensors";

}  // namespace

Json Trainer::Implementation::state_document() const {
  Json json = to_json(state, best.name);
  json["trouble"] = trouble.state();
  return json;
}

void Trainer::Implementation::take_state(const Json& json, const std::string& origin) {
  state = train_state_from_json(json, best.name, origin);
  try {
    trouble.load_state(json.value("trouble", Json()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()));
  }
  moved = {};
}

Trainer::Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch)
    : implementation_(std::make_unique<Implementation>(model, config, task, watch)) {}
Trainer::~Trainer() = default;

TrainResult Trainer::run(const TrainHooks& hooks) { return implementation_->run(*this, hooks); }

void Trainer::save(const std::filesystem::path& directory) const { write_snapshot(snapshot(), directory); }

Snapshot Trainer::snapshot() const {
  const Implementation& self = *implementation_;
  Snapshot snapshot{self.state.step, {}, self.state_document()};
  snapshot.files.push_back({"model.safetensors", self.weights.evaluated(), {}});
  if (self.weights.differ()) snapshot.files.push_back({"trained.safetensors", self.weights.trained(), {}});
  snapshot.files.push_back({"optimizer.safetensors", self.optimizer->state(), {{"optimizer", self.config.optimizer}}});
  if (NamedTensors watch = self.watches.state(); !watch.empty())
    snapshot.files.push_back({"watch.safetensors", std::move(watch), {}});
  if (!self.carried.empty()) snapshot.files.push_back({kCarriedFile, self.carried.tensors, {}});
  return snapshot;
}

int64_t Trainer::best_step() const { return implementation_->state.best_step; }

std::vector<int64_t> Trainer::best_steps() const {
  std::vector<int64_t> steps;
  for (const auto& [step, value] : implementation_->state.best_list) steps.push_back(step);
  return steps;
}

std::vector<int64_t> Trainer::kept_steps() const {
  Implementation& self = *implementation_;
  std::vector<int64_t> steps = self.timeline.due_steps(self.config.keep_every, step());
  if (!self.config.keep_every.is_zero()) steps.insert(steps.begin(), 0);
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
  const auto watch = directory / "watch.safetensors";
  self.watches.load_state(std::filesystem::exists(watch) ? load_safetensors(watch) : NamedTensors());
  const auto carried = directory / kCarriedFile;
  self.carried.tensors = std::filesystem::exists(carried) ? load_safetensors(carried) : NamedTensors();
  for (auto& [name, tensor] : self.carried.tensors) tensor = tensor.to(self.model.parameters().flat().device());
  self.take_state(read_sealed(state), state.string());
  self.state.complete = self.at_end() || self.out_of_patience();  // with the current limits, which may have been raised
  self.source.go_to(self.state.epoch);
  if (self.state.batch >= self.source.plan().size()) {
    throw Error(fmt::format("{}: batch {} of an epoch with {} batches", state.string(), self.state.batch,
                            self.source.plan().size()),
                "the data have changed since the run started");
  }
}

void Trainer::join(const Group& group) {
  Implementation& self = *implementation_;
  if (self.source.streams() && group.size() > 1)
    throw Error("a stream is trained on in one process", "start one process, or set task.language-modeling.stream = 0");
  self.group = group;
  self.computation.join(group);
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
  implementation_->computation.join({});
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
