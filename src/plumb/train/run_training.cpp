#include "plumb/train/run_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/machine.h"
#include "plumb/base/progress.h"
#include "plumb/ops/device.h"
#include "plumb/parallel/rendezvous.h"
#include "plumb/parallel/workers.h"
#include "plumb/run/about_file.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/run/directory.h"
#include "plumb/run/environment.h"
#include "plumb/run/foreign_models.h"
#include "plumb/run/initial_weights.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/seal.h"
#include "plumb/train/agreement.h"
#include "plumb/train/begun_model.h"
#include "plumb/train/data_lengths.h"
#include "plumb/train/launched.h"
#include "plumb/train/run_writer.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// The result of a run; empty if it has not ended, or if the file is damaged: then the last checkpoint yields the
/// result again.
std::optional<TrainResult> read_result(const fs::path& run) {
  const fs::path file = run / "result.json";
  if (!fs::exists(file)) return {};
  try {
    const Json document = read_sealed(file);
    return about_file(file.string(), [&] { return TrainResult::from_json(document); });
  } catch (const Error& error) {
    warn(fmt::format("{}; it is computed again", error.what()));
  }
  return {};
}

/// Resumes from the newest intact checkpoint, if any, of the run that messages call `name`. Returns metrics.jsonl with
/// the points up to there.
std::unique_ptr<MetricsFile> take_up(Trainer& trainer, const RunConfig& config, const fs::path& out,
                                     const std::string& name) {
  const fs::path file = out / "metrics.jsonl";
  const std::optional<ResumePoint> place = find_resume_point(out);
  if (!place) {
    if (std::error_code absent; fs::file_size(file, absent) > 0 && !absent)
      say(fmt::format("{}: ended before its first checkpoint (train.checkpoint_every), so it begins again", name));
    return std::make_unique<MetricsFile>(file, trainer.history(), trainer.watched());
  }
  trainer.load(place->checkpoint);
  std::unique_ptr<MetricsFile> metrics;
  if (place->metrics) metrics = std::make_unique<MetricsFile>(file, *place->metrics);
  RunRecords records = read_records(file);
  trainer.set_history(std::move(records.points), std::move(records.watched));
  if (!metrics) metrics = std::make_unique<MetricsFile>(file, trainer.history(), trainer.watched(), trainer.troubles());
  check_best(out, trainer.best_step(), trainer.best_steps());
  remove_old_checkpoints(
      out, trainer.step(),
      {config.train.keep_checkpoints, trainer.permanent_steps(), trainer.best_steps(), trainer.rollback_step()});
  say(fmt::format("{}: resuming from step {}", name, trainer.step()));
  return metrics;
}

/// Fills in what the configuration leaves to the data, and makes paths absolute.
RunConfig resolved(RunConfig config, const Task& task) {
  config.task.name = task.name();
  task.complete(config.model);
  config.data = fs::weakly_canonical(config.data).string();
  require_utf8(config.data);
  // A resumed run does not need them.
  if (fs::exists(config.initial_weights))
    config.initial_weights = locate_run(config.initial_weights).checkpoint.string();
  require_utf8(config.initial_weights);
  return config;
}

/// Whether the run in `out`, which may not exist yet, has no checkpoint yet and begins with given weights.
bool begins_elsewhere(const RunConfig& config, const fs::path& out) {
  return !config.initial_weights.empty() && checkpoints_of(out).empty();
}

/// Throws Error if `out` is an imported model or an average, which have weights but no training state.
void require_no_mere_weights(const fs::path& out) {
  if (!fs::exists(out / "model.safetensors")) return;
  throw Error(fmt::format("{}: an imported model or an average of checkpoints cannot be trained further", out.string()),
              fmt::format("begin a new run with its weights: --out OTHER --set initial.weights={}", out.string()));
}

/// Whether `given` may be the new location of the initial weights `stored`: those are gone, and `given` exists and, if
/// they were a checkpoint, has the same step.
bool may_replace_weights(const fs::path& stored, const fs::path& given) {
  if (stored.empty() || fs::exists(stored) || !fs::exists(given)) return false;
  return stored.parent_path().filename() != "checkpoints" || stored.filename() == given.filename();
}

/// Whether the limit `given` ends a run later than `stored`; 0 means no limit.
bool ends_later(int64_t given, int64_t stored) { return stored != 0 && (given == 0 || given > stored); }
/// False for durations in different units.
bool ends_later(const Duration& given, const Duration& stored) {
  return given.unit() == stored.unit() && ends_later(given.amount(), stored.amount());
}

/// Stores `config` as the configuration of the run in `out`.
void store_config(const RunConfig& config, const fs::path& out) {
  const std::string text = sealed_text(to_toml(config));
  const fs::path file = out / "config.toml";
  if (!fs::exists(file) || read_file(file) != text) write_file_atomic(file, text);
}

/// Prepares to go on with the run in `out`, whose stored configuration may differ from `config` in the location of the
/// data, or of initial weights that have moved, in [watch], in processes, tensor_parallel, pipeline_*,
/// micro_batch_tokens, recompute, shard and timeout and, to train longer, in steps and epochs; then this returns the
/// stored [train]. Throws Error on any other difference.
std::optional<TrainConfig> match_config(RunConfig& config, const fs::path& out) {
  RunConfig stored = load_run_config(out);
  config.plan_changes = stored.plan_changes;
  stored.data = config.data;  // require_same_data compares the contents
  if (may_replace_weights(stored.initial_weights, config.initial_weights))
    stored.initial_weights = config.initial_weights;
  stored.watch = config.watch;
  stored.train.processes = config.train.processes;
  stored.train.tensor_parallel = config.train.tensor_parallel;
  stored.train.pipeline_parallel = config.train.pipeline_parallel;
  stored.train.pipeline_schedule = config.train.pipeline_schedule;
  stored.train.pipeline_chunks = config.train.pipeline_chunks;
  stored.train.micro_batch_tokens = config.train.micro_batch_tokens;
  stored.train.shard = config.train.shard;
  stored.train.recompute = config.train.recompute;
  stored.train.timeout = config.train.timeout;
  const TrainConfig former = stored.train;
  if (ends_later(config.train.steps, former.steps)) stored.train.steps = config.train.steps;
  if (ends_later(config.train.epochs, former.epochs)) stored.train.epochs = config.train.epochs;
  require_equal(config, stored, out.string());
  return stored.train == former ? std::nullopt : std::optional(former);
}

/// Says that the run `name` is now longer than by the plan `former` and, if its steps so far had other learning rates
/// than they would have had by the present one, notes so in the configuration.
void note_length(RunConfig& config, const TrainConfig& former, const Trainer& trainer, const std::string& name) {
  const int64_t step = trainer.step();
  const std::string limit = former.epochs == 0 ? "" : fmt::format(" or {} epochs", former.epochs);
  std::string change = fmt::format("{} steps{} until step {}", former.steps.text(), limit, step);
  const std::optional<RateChange> rate = trainer.change_from(former);
  if (!rate) return say(fmt::format("{}: is trained further; it was planned with {}", name, change));
  say(fmt::format(
      "{}: is trained further; the learning rate at step {} is {:.3g}; it was {:.3g} at step {}. So it is no "
      "replicate of a run that was planned with its new length, which config.toml notes in [plan]",
      name, step + 1, rate->next, rate->last, step));
  config.plan_changes.push_back(std::move(change));
}

/// Throws Error if the processes that this one would start are far too many for the machine.
void require_startable(int64_t processes) {
  const int64_t cores = std::thread::hardware_concurrency(), most = std::max<int64_t>(64, 8 * cores);
  if (processes > most)
    throw Error(fmt::format("train.processes = {}: this machine has {} cores", processes, cores),
                fmt::format("at most {} are started here; a launcher starts them on several machines", most));
}

/// The group of this process and the workers that it starts on this machine, which share its threads.
Group with_workers(Workers& workers, std::optional<ThreadShare>& share, const TrainConfig& config, const fs::path& out,
                   const TrainObservers& observers) {
  Rendezvous rendezvous{0, config.processes};
  rendezvous.local_size = config.processes;
  rendezvous.timeout = config.timeout;
  rendezvous.token = random_token();
  share.emplace(config.processes);
  return join_group(rendezvous, {[&](int64_t port) {
                                   workers.start(
                                       {"train", "--out", out.string(), "--threads", std::to_string(share->own()),
                                        "--device", ops::default_device().is_cuda() ? "cuda" : "cpu", "--quiet"},
                                       config.processes, port, rendezvous.token);
                                 },
                                 [&] {
                                   workers.check();
                                   if (any_of(observers, &TrainObserver::gives_up)) throw JoiningStopped();
                                 }});
}

/// run_training in a process of the group `launched` or, without one, in a process that starts the others itself.
TrainResult train_in(const fs::path& out, const RunConfig& given, const std::optional<Group>& launched,
                     const TrainObservers& observers, TrainOptions options) {
  // Invalid requests are detected before the directory is created.
  require_no_mere_weights(out);
  const std::unique_ptr<Task> task = make_task(given.task, DataDirectory::open(given.data), given.model.kind);
  RunConfig config = resolved(given, *task);
  config.plan_changes.clear();  // those of another run, from whose configuration this one was made
  if (launched) config.train.processes = launched->size();
  if (!launched) require_startable(config.train.processes);
  validate(config.train);
  require_short_sequences(*task, config.model);
  if (launched && launched->rank() > 0) return train_as_worker(config, *task, *launched, observers);
  if (!fs::exists(out / "config.toml")) require_decay_start(config.train);
  const std::unique_ptr<Model> built = make_begun_model(config);
  Model& model = *built;
  Trainer trainer(model, config.train, *task, config.watch);
  if (begins_elsewhere(config, out))  // to throw if they do not fit
    static_cast<void>(load_initial_weights(model, config.initial_weights, task->data()));
  const Json fingerprint = fingerprint_of(task->data());
  if (launched) launched->require_same(facts_of(config, fingerprint));

  claim_output_directory(out, "run");
  const OpenRun run(out);
  const fs::path& path = run.path();
  const std::string name = out.string();
  require_same_data(out, fingerprint, config.data);
  std::optional<TrainResult> ended = read_result(out);
  std::optional<TrainConfig> former;  // if the run is longer now
  if (fs::exists(out / "config.toml")) former = match_config(config, out);
  if (!former) store_config(config, out);
  record_data(out, fingerprint);
  if (ended && former && ended->outcome == RunOutcome::finished) {
    fs::remove(out / "result.json");
    ended.reset();
  }
  if (ended && ended->outcome != RunOutcome::stopped) {
    say(fmt::format("{}: this run has already {} at step {}", name, to_string(ended->outcome), ended->steps));
    if (launched) static_cast<void>(broadcast_outcome(*launched, ended->outcome));
    return *ended;
  }
  say_what_exceeds_micro_batches(*task, config.train);
  for (const fs::path& directory : {out, out / "checkpoints", out / "best-checkpoints"}) clear_unfinished(directory);
  if (model.parameters().has_flat()) model.initialize(static_cast<uint64_t>(config.train.seed));
  RunWriter writer(run, config.train, run.naming([&] { return take_up(trainer, config, path, name); }),
                   any_of(observers, &TrainObserver::reads_files));
  if (begins_elsewhere(config, path)) {
    const std::string moved = load_initial_weights(model, config.initial_weights, task->data());
    if (!moved.empty()) say(moved);
  }
  if (former) {
    note_length(config, *former, trainer, name);
    store_config(config, run.place());
  }
  fs::remove(path / "result.json");  // written again when the run ends
  std::optional<ThreadShare> share;
  Workers workers;  // destroyed (and killed if still running) before the trainer closes the connection
  const Group group = launched ? *launched : with_workers(workers, share, config.train, run.place(), observers);
  if (!launched) group.require_same(facts_of(config, fingerprint));
  static_cast<void>(broadcast_outcome(group, std::nullopt));
  trainer.join(group);

  record_environment(run.place(), trainer.step(), config.train.processes);
  tell(observers, &TrainObserver::on_place, path);
  TrainObservers all = {&writer};  // first: the others may read what it has written
  all.insert(all.end(), observers.begin(), observers.end());
  options.spills_to = path;
  TrainResult result = telling_others(group, [&] { return run.naming([&] { return trainer.run(all, options); }); });
  trainer.leave();
  run.naming([&] { writer.end(result); });
  tell(observers, &TrainObserver::on_place, run.place());
  workers.wait();
  return result;
}

}  // namespace

TrainResult run_training(const RunConfig& config, const fs::path& out, const TrainObservers& observers,
                         const TrainOptions& options) {
  return train_launched(config.train, observers, options.share_threads, [&](const std::optional<Group>& launched) {
    return train_in(out, config, launched, observers, options);
  });
}

}  // namespace plumb
