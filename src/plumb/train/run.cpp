#include "plumb/train/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/progress.h"
#include "plumb/io/safetensors.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/parallel/workers.h"
#include "plumb/train/agreement.h"
#include "plumb/train/launched.h"
#include "plumb/train/metrics_file.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Keeps a second process out of a run directory; the system releases the lock when the process ends, in any way.
class Lock {
 public:
  explicit Lock(const fs::path& directory)
      : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(fmt::format("{}: another process is training here", directory.string()),
                "wait for it to end, or choose another --out");
  }
  ~Lock() { ::close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

/// Complete checkpoints by step.
std::map<int64_t, fs::path> checkpoints(const fs::path& run) {
  std::map<int64_t, fs::path> found;
  constexpr std::string_view kPrefix = "step-";
  if (!fs::is_directory(run / "checkpoints")) return found;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) continue;
    if (name.find_first_not_of("0123456789", kPrefix.size()) != std::string::npos)
      continue;  // left incomplete by a kill
    found.emplace(std::stoll(name.substr(kPrefix.size())), entry.path());
  }
  return found;
}

void write_checkpoint(const fs::path& run, const Trainer& trainer, int64_t keep) {
  write_directory_atomic(run / "checkpoints" / fmt::format("step-{:06}", trainer.step()),
                         [&](const fs::path& directory) { trainer.save(directory); });
  const auto all = checkpoints(run);
  auto oldest = all.begin();
  for (auto surplus = static_cast<int64_t>(all.size()) - keep; surplus > 0; --surplus)
    fs::remove_all((oldest++)->second);
}

TrainResult read_result(const fs::path& run) { return take_json(run / "result.json", &TrainResult::from_json); }

/// The run with everything filled in that the configuration leaves to the data.
RunConfig resolved(RunConfig config, const Task& task) {
  config.task.name = task.name();
  task.complete(config.model);
  config.data = fs::weakly_canonical(config.data).string();
  require_utf8(config.data);
  return config;
}

/// Whether `given` may replace `stored` as a run's data directory: `stored` is gone, or both hold the same data.
bool may_replace_data(const fs::path& stored, const fs::path& given) {
  if (stored == given || !fs::exists(stored / "data.json")) return true;
  const Json before = read_json(stored / "data.json"), after = read_json(given / "data.json");
  return before.value("splits", Json()) == after.value("splits", Json()) &&
         before.value("tokenizer", Json()) == after.value("tokenizer", Json());
}

/// Whether the limit `given` ends a run later than `stored`; 0 means no limit.
bool ends_later(int64_t given, int64_t stored) { return stored != 0 && (given == 0 || given > stored); }

/// Stores `config` as the configuration of the run in `out`. It may differ from the stored one in the location of the
/// data, in its processes, in what is watched and, to train longer, in steps and epochs. Throws Error on any other
/// difference.
void update_config(const RunConfig& config, const fs::path& out) {
  RunConfig stored = load_run_config(out);
  if (may_replace_data(stored.data, config.data)) stored.data = config.data;
  stored.watch = config.watch;
  stored.train.processes = config.train.processes;
  stored.train.timeout = config.train.timeout;
  const bool more_steps = ends_later(config.train.steps, stored.train.steps);
  const bool more_epochs = ends_later(config.train.epochs, stored.train.epochs);
  if (more_steps) stored.train.steps = config.train.steps;
  if (more_epochs) stored.train.epochs = config.train.epochs;
  require_equal(config, stored, out.string());
  // In this order: after a kill in between, the result is computed again.
  if ((more_steps || more_epochs) && fs::exists(out / "result.json") && read_result(out).outcome == "finished")
    fs::remove(out / "result.json");
  const std::string text = to_toml(config);
  if (read_file(out / "config.toml") != text) write_file_atomic(out / "config.toml", text);
}

/// The group of this process and of workers that it starts on this machine, which share its threads.
Group with_workers(Workers& workers, std::optional<ThreadShare>& share, const TrainConfig& config, const fs::path& out,
                   const TrainHooks& hooks) {
  Rendezvous rendezvous{0, config.processes};
  rendezvous.local_size = config.processes;
  rendezvous.timeout = config.timeout;
  rendezvous.token = random_token();
  share.emplace(config.processes);
  return meet(rendezvous, {[&](int64_t port) {
                             workers.start({"train", "--out", out.string(), "--threads", std::to_string(share->own()),
                                            "--device", ops::default_device().is_cuda() ? "cuda" : "cpu", "--quiet"},
                                           config.processes, port, rendezvous.token);
                           },
                           [&] {
                             workers.check();
                             if (hooks.give_up && hooks.give_up()) throw JoiningStopped();
                           }});
}

/// run_training in a process that a launcher has started (one of `launched`), or that starts the others itself.
TrainResult train_in(const fs::path& out, const RunConfig& given, const std::optional<Group>& launched,
                     const TrainHooks& given_hooks) {
  // Everything that can be wrong with the request is detected before the directory is created.
  const std::unique_ptr<Task> task = make_task(given.task, DataDirectory::open(given.data), given.model.kind);
  RunConfig config = resolved(given, *task);
  if (launched) config.train.processes = launched->size();
  validate(config.train);
  if (launched && launched->rank() > 0) return train_as_worker(config, *task, *launched, given_hooks);
  const std::unique_ptr<Model> built = make_model(config.model);
  Model& model = *built;
  Trainer trainer(model, config.train, *task, config.watch);
  if (launched) launched->require_same(facts_of(config, task->data()));

  claim_output_directory(out, "run");
  const Lock lock(out);
  if (fs::exists(out / "config.toml")) {
    update_config(config, out);
  } else {
    write_file_atomic(out / "config.toml", to_toml(config));
  }
  if (fs::exists(out / "result.json")) {
    TrainResult result = read_result(out);
    if (result.outcome != "stopped") {
      say(fmt::format("{}: this run has already {} at step {}", out.string(), result.outcome, result.steps));
      if (launched) static_cast<void>(launched->broadcast(result.outcome));
      return result;
    }
  }
  clear_unfinished(out);
  clear_unfinished(out / "checkpoints");
  if (const auto all = checkpoints(out); !all.empty()) {
    trainer.load(all.rbegin()->second);
    trainer.set_history(read_metrics(out / "metrics.jsonl"), read_watch_records(out / "metrics.jsonl"));
    say(fmt::format("{}: resuming from step {}", out.string(), trainer.step()));
  } else {
    model.initialize(static_cast<uint64_t>(config.train.seed));
  }
  std::optional<ThreadShare> share;
  Workers workers;  // if they are still running, killed before the trainer closes their connection
  const Group group = launched ? *launched : with_workers(workers, share, config.train, out, given_hooks);
  if (!launched) group.require_same(facts_of(config, task->data()));
  static_cast<void>(group.broadcast(std::string(kTrain)));
  trainer.join(group);

  MetricsFile metrics(out / "metrics.jsonl", trainer.history(), trainer.watched());
  TrainHooks hooks = given_hooks;
  hooks.point = [&](const TrainPoint& point) {
    metrics.add(point);
    if (given_hooks.point) given_hooks.point(point);
  };
  hooks.watched = [&](const WatchRecord& record) {
    metrics.add(record);
    if (given_hooks.watched) given_hooks.watched(record);
  };
  hooks.checkpoint = [&](const Trainer& trained) {
    write_checkpoint(out, trained, config.train.keep_checkpoints);
    if (given_hooks.checkpoint) given_hooks.checkpoint(trained);
  };
  hooks.best = [&](const Trainer& trained) {
    write_directory_atomic(out / "best", [&](const fs::path& directory) { trained.save(directory); });
    if (given_hooks.best) given_hooks.best(trained);
  };
  TrainResult result = telling_others(group, [&] { return trainer.run(hooks); });
  trainer.leave();
  metrics.end(result);
  write_json(out / "result.json", result.to_json());
  workers.wait();
  return result;
}

}  // namespace

TrainResult run_training(const RunConfig& config, const fs::path& out, const TrainHooks& hooks) {
  return train_launched(config.train, hooks,
                        [&](const std::optional<Group>& launched) { return train_in(out, config, launched, hooks); });
}

RunConfig load_run_config(const fs::path& run) {
  require_directory(run, "run");
  return read_run_config(Config::from_file(run / "config.toml"));
}

fs::path latest_checkpoint(const fs::path& run) {
  require_directory(run, "run");
  const auto all = checkpoints(run);
  if (all.empty())
    throw Error(fmt::format("{}: has no checkpoint yet", run.string()),
                "resume it with `plumb train --out " + run.string() + "`");
  return all.rbegin()->second;
}

RunAndCheckpoint locate_run(const std::string& name) {
  fs::path path = fs::absolute(name).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const char* hint = "give a run directory made by `plumb train`, or a checkpoint in one";
  if (!fs::is_directory(path)) throw Error(name + " is not a directory", hint);
  // A checkpoint is recognized by its weights; its run is the closest parent directory with a configuration.
  if (!fs::exists(path / "model.safetensors")) return {path, latest_checkpoint(path)};
  for (fs::path run = path.parent_path(); run != run.root_path(); run = run.parent_path()) {
    if (fs::exists(run / "config.toml")) return {run, path};
  }
  throw Error(name + " is a checkpoint outside a run directory", hint);
}

std::unique_ptr<Model> load_model(const fs::path& run) { return load_model(run, latest_checkpoint(run)); }

std::unique_ptr<Model> load_model(const fs::path& run, const fs::path& checkpoint) {
  std::unique_ptr<Model> model = make_model(load_run_config(run).model);
  const fs::path file = checkpoint / "model.safetensors";
  load_parameters(model->parameters(), load_safetensors(file), file.string());
  return model;
}

}  // namespace plumb
