#include "plumb/train/trainer.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/memory.h"
#include "plumb/optim/parameter_set.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/trainer_implementation.h"

namespace plumb {
namespace {

/// Tensors that belong to no parameter.
std::vector<StateTensor> of_run(const NamedTensors& tensors) {
  std::vector<StateTensor> state;
  for (const auto& [name, tensor] : tensors) state.push_back({.kind = name, .value = tensor});
  return state;
}

}  // namespace

std::vector<Trainer::Implementation::Part> Trainer::Implementation::parts() {
  std::vector<Part> all;
  const bool held = shards_parameters() && !model.parameters().has_flat();
  const auto of_model = [this](const NamedTensors& values) { return state_of(values, model.parameters()); };
  all.push_back({.file = "model.safetensors", .sharded = held, .values = [this, held, of_model] {
                   return of_model(held ? named_values(shards->local()) : weights.evaluated());
                 }});
  if (held) {
    all.back().unshard = [this](const StateTensor& own) {
      return own.parameter ? shards->full(*own.parameter, own.value) : own.value;
    };
  }
  all.back().take = [this, held](const NamedTensors& tensors, const std::string& origin) {
    load_parameters(held ? shards->local() : model.parameters(), tensors, origin);
  };
  if (weights.differ()) {
    all.push_back({.file = "trained.safetensors", .moves = true});
    all.back().values = [this, of_model] { return of_model(weights.trained()); };
    all.back().take = [this](const NamedTensors& tensors, const std::string& origin) {
      weights.load_trained(tensors, origin);
    };
  }
  all.push_back({.file = "optimizer.safetensors",
                 .sharded = shards != nullptr,
                 .full = division && !optimizer->acts_by_element(),
                 .values = [this] { return optimizer->state_tensors(); },
                 .unshard = [this](const StateTensor& own) { return optimizer->full(own); }});
  all.back().take = [this](const NamedTensors& tensors, const std::string& origin) {
    optimizer->load_state(tensors, origin);
  };
  all.back().metadata = {{"optimizer", config.optimizer}};
  all.push_back({.file = "watch.safetensors", .own = true, .values = [this] { return of_run(watches.state()); }});
  all.back().take = [this](const NamedTensors& tensors, const std::string&) { watches.load_state(tensors); };
  all.push_back({.file = "carried.safetensors", .own = true, .values = [this] { return of_run(carried.tensors); }});
  all.back().take = [this](const NamedTensors& tensors, const std::string&) {
    carried.tensors = tensors;
    for (auto& [name, tensor] : carried.tensors) tensor = tensor.to(model.parameters().flat().device());
  };
  return all;
}

Snapshot Trainer::Implementation::snapshot() {
  Snapshot snapshot{state.step, collected, state_document()};
  if (collects()) {
    if (collected.empty()) throw Error("the state of a divided model has not been collected");
    return snapshot;
  }
  for (const Part& part : parts()) {
    NamedTensors tensors = named(part.values(), model.parameters());
    if (!part.own || !tensors.empty()) snapshot.files.push_back({part.file, std::move(tensors), part.metadata, false});
  }
  return snapshot;
}

void Trainer::Implementation::restore(const Snapshot& snapshot, const std::string& origin) {
  for (const Part& part : parts()) {
    const Snapshot::File* file = snapshot.find(part.file);
    const std::string name = fmt::format("{}/{}", origin, part.file);
    if (file == nullptr && !part.own) throw Error(fmt::format("{}: is missing", name));
    part.take(file == nullptr ? NamedTensors() : file->tensors, name);
  }
  take_state(snapshot.state, origin + "/state.json");
}

std::optional<PipelineSplit> Trainer::Implementation::distribute_state() {
  std::optional<PipelineSplit> stages;
  if (!model.parameters().has_flat()) {
    stages = begin_sharded();
  } else {
    // All of it before any is taken, which changes the others.
    std::map<std::string, std::vector<StateTensor>> received;
    for (const Part& part : parts()) {
      if (part.own || mesh.all.size() == 1) continue;
      std::vector<StateTensor>& tensors = received[part.file] = part.values();
      for (StateTensor& tensor : tensors) {
        tensor.value = tensor.value.contiguous().clone();
        mesh.all.broadcast(tensor.value);
      }
    }
    stages = divide();
    for (const Part& part : parts()) {
      const auto found = received.find(part.file);
      if (found == received.end()) continue;
      for (StateTensor& tensor : found->second) {
        if (division && !part.full && tensor.parameter) tensor.value = division->shard(*tensor.parameter, tensor.value);
      }
      part.take(named(found->second, model.parameters()), "rank 0");
    }
    if (shards) shards->shard_values();
  }
  if (mesh.all.size() > 1) ops::return_tensor_memory();  // the whole state is not needed again
  take_state(Json::parse(mesh.all.broadcast(state_document().dump())), "rank 0");
  return stages;
}

std::optional<PipelineSplit> Trainer::Implementation::begin_sharded() {
  std::optional<PipelineSplit> stages = divide();
  if (!model.parameters().has_flat() && !shards_parameters())
    throw Error("a model without memory needs several processes that divide it");
  const at::NoGradGuard no_graph;
  if (shards) shards->shard_values();
  const bool resumes = mesh.all.any(!beginning.empty());
  if (!resumes) {
    initialize_shards(
        held_by(shards_parameters()), model.initializer(static_cast<uint64_t>(config.seed)),
        [&](size_t i) { return full_sizes(i); },
        [&](size_t i, const Tensor& full) { return shard_of(i, full, shards_parameters()); });
  }
  for (const Part& part : parts()) {
    if (!resumes || part.own) continue;
    std::optional<SafetensorsReader> file;
    if (mesh.all.rank() == 0) file.emplace(beginning / part.file);
    NamedTensors loaded;
    const Parameters& held = held_by(part.sharded);
    for (const StateTensor& tensor : part.values()) {
      const std::string name = name_of(tensor, model.parameters());
      const Tensor& value = tensor.value;
      const std::optional<size_t> owner = part.full ? std::nullopt : tensor.parameter;
      const bool divided = owner && value.sizes() == held.all()[*owner].value.sizes();
      const Tensor full = at::empty(divided ? at::IntArrayRef(full_sizes(*owner)) : value.sizes(),
                                    held.options().dtype(value.scalar_type()));
      if (file) load_tensor({{name, file->read(name)}}, name, full, (beginning / part.file).string());
      mesh.all.broadcast(full);
      const Tensor own = divided ? shard_of(*owner, full, part.sharded) : full;
      // To where it belongs, mostly, so that `take` copies nothing; not at all if another process has it.
      if (!part.moves && !value.is_meta()) value.copy_(own);
      loaded.emplace_back(name, part.moves ? own.clone() : value);
    }
    part.take(loaded, "rank 0");
  }
  return stages;
}

const Parameters& Trainer::Implementation::held_by(bool sharded) const {
  return sharded ? shards->local() : model.parameters();
}

std::vector<int64_t> Trainer::Implementation::full_sizes(size_t parameter) const {
  return division ? division->full_sizes(parameter) : model.parameters().all()[parameter].value.sizes().vec();
}

Tensor Trainer::Implementation::shard_of(size_t parameter, const Tensor& full, bool sharded) const {
  const Tensor own = division ? division->shard(parameter, full) : full;
  return sharded ? shards->shard(parameter, own) : own;
}

Tensor Trainer::Implementation::full_of(const Part& part, const StateTensor& own) const {
  const Tensor full = part.unshard ? part.unshard(own) : own.value;
  if (!own.parameter || part.full || !division || mesh.data.rank() > 0) return full;
  return division->full(*own.parameter, full.detach());
}

std::optional<PipelineSplit> Trainer::Implementation::divide() {
  const bool divides = mesh.tensor.size() > 1 || mesh.pipeline.size() > 1;
  const bool of_parameters = sharded() && config.shard == "parameters";
  std::optional<PipelineSplit> stages;
  if (!divides && !sharded()) return stages;
  if (divides) division = model.divide(mesh.tensor);
  if (mesh.pipeline.size() > 1) {
    stages.emplace(model, mesh.pipeline.size(), config.pipeline_chunks);
    division->keep_stage(model.mutable_parameters(), mesh.pipeline, stages->users());
  }
  if (!of_parameters) model.allocate();
  if (sharded() && config.shard != "optimizer")
    shards = std::make_unique<ParameterShards>(model.mutable_parameters(), mesh.data, of_parameters);
  optimizer = make_train_optimizer(config, model, mesh.data, division_or_null(), shards.get());
  weights = EvaluatedWeights(model, *optimizer, config.average_decay);
  update_norms = UpdateNorms(model.parameters(), UpdateNorms::kSamples, division_or_null(),
                             shards_parameters() ? shards.get() : nullptr);
  return stages;
}

std::string Trainer::Implementation::pipeline_summary() const {
  const int64_t stages = mesh.pipeline.size();
  const auto count = std::ssize(source.share_of(window(), computation.division()).micro_batches);
  const double bubble = pipeline_bubble(stages, config.pipeline_chunks, count);
  return fmt::format(
      "a pipeline of {} stages, with {} micro-batches in the first step: stages idle for {:.0f}% of it{}", stages,
      count, 100 * bubble,
      bubble > 0.25 ? "; train.micro_batch_tokens and train.accumulate say how many there are" : "");
}

Json Trainer::Implementation::state_document() {
  Json json = make_document("state", 1);
  json.update(described_json(state));
  json["trouble"] = Json::object();
  JsonWriter writer(json["trouble"]);
  describe(writer, trouble);
  return json;
}

void Trainer::Implementation::take_state(const Json& json, const std::string& origin) {
  try {
    state = from_described_json<TrainState>(json);
    JsonReader(json).section(
        "trouble", [this](Fields& field) { describe(field, trouble); }, true);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: not the state of a training run: {}", origin, error.what()), error.hint());
  }
  last_update = {};
  state.complete = at_end() || out_of_patience();  // with the current limits, which may have been raised
  source.go_to(state.epoch);
  if (state.batch >= source.plan().size()) {
    throw Error(fmt::format("{}: batch {} of an epoch with {} batches", origin, state.batch, source.plan().size()),
                "the data have changed since the run started");
  }
}

Trainer::Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch)
    : implementation_(std::make_unique<Implementation>(*this, model, config, task, watch)) {}
Trainer::~Trainer() = default;

TrainResult Trainer::run(const TrainObservers& observers, const TrainOptions& options) {
  implementation_->observers = observers;
  return implementation_->run(options);
}

void Trainer::save(const std::filesystem::path& directory) const { write_snapshot(snapshot(), directory); }

Snapshot Trainer::snapshot() const { return implementation_->snapshot(); }

int64_t Trainer::best_step() const { return implementation_->state.best_step; }

std::vector<int64_t> Trainer::best_steps() const {
  std::vector<int64_t> steps;
  for (const TrainState::Evaluation& each : implementation_->state.best_list) steps.push_back(each.step);
  return steps;
}

std::vector<int64_t> Trainer::permanent_steps() const {
  Implementation& self = *implementation_;
  std::vector<int64_t> steps = self.timeline.due_steps(self.config.keep_every, step());
  if (!self.config.keep_every.is_zero()) steps.insert(steps.begin(), 0);
  return steps;
}

std::optional<RateChange> Trainer::change_from(const TrainConfig& former) const {
  Implementation& self = *implementation_;
  const std::string& kind = self.model.config().kind;
  Timeline timeline = make_timeline(self.source.costs(), former, self.source.settings(), kind);
  const TrainConfig in_steps = resolved(former, timeline);
  const Schedule schedule = make_schedule(in_steps, width_of(self.model.config()));
  bool same = step() == 0 || in_steps.groups == self.config.groups;
  for (int64_t each = 1; each <= step() && same; ++each) same = schedule(each) == self.schedule(each);
  if (same) return std::nullopt;
  return RateChange{schedule(step()) * self.trouble.rate_factor(), self.rate_of(step() + 1)};
}

void Trainer::load(const std::filesystem::path& directory) {
  Implementation& self = *implementation_;
  if (self.model.parameters().has_flat()) return self.restore(read_snapshot(directory), directory.string());
  self.beginning = directory;  // join() reads its tensors
  self.take_state(read_snapshot_state(directory), (directory / "state.json").string());
}

void Trainer::join(const Group& group) {
  Implementation& self = *implementation_;
  if (self.source.streams() && group.size() > 1)
    throw Error("a stream is trained on in one process", "start one process, or set task.language-modeling.stream = 0");
  self.mesh = Mesh(group, self.config.tensor_parallel, self.config.pipeline_parallel);
  std::optional<PipelineSplit> stages = self.distribute_state();
  self.computation.join(self.mesh, self.division_or_null(), self.shards.get(), std::move(stages));
  if (self.mesh.pipeline.size() > 1 && group.rank() == 0) say(self.pipeline_summary());
}

void Trainer::make_whole() {
  if (implementation_->shards) implementation_->shards->restore();
}

void Trainer::leave() {
  implementation_->computation.join({});
  implementation_->mesh.leave();
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
int64_t Trainer::planned_steps() const { return implementation_->config.steps.in_steps(); }
int64_t Trainer::rollback_step() const { return implementation_->trouble.anchor(); }
const Model& Trainer::model() const { return implementation_->model; }

TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainObservers& observers,
                  const WatchConfig& watch) {
  return Trainer(model, config, task, watch).run(observers);
}

}  // namespace plumb
