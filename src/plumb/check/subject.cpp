#include "plumb/check/subject.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "plumb/run/initial_weights.h"
#include "plumb/train/data_lengths.h"

namespace plumb::check {

Subject open_subject(RunConfig config, std::filesystem::path checkpoint) {
  Subject subject{std::move(config), nullptr, std::move(checkpoint)};
  RunConfig& run = subject.config;
  subject.task = make_task(run.task, DataDirectory::open(run.data), run.model.kind);
  run.task.name = subject.task->name();
  subject.task->complete(run.model);
  run.train.processes = 1;  // a trial is a run in this process, which has the same result
  run.train.shard = "none";
  validate(run.model);
  validate(run.train);
  require_short_sequences(*subject.task, run.model);
  if (subject.checkpoint.empty()) require_decay_start(run.train);
  if (!subject.checkpoint.empty()) {
    const std::optional<int64_t> step = step_of(subject.checkpoint);
    if (!step) {
      throw Error(fmt::format("{}: has weights, but no training state to continue from", subject.checkpoint.string()),
                  "plan a new run with these weights: --set initial.weights=…");
    }
    subject.first_step = *step;
  }
  if (subject.checkpoint.empty() && !run.initial_weights.empty())
    run.initial_weights = locate_run(run.initial_weights).checkpoint.string();
  return subject;
}

bool begins_at_random(const Subject& subject) {
  return subject.checkpoint.empty() && subject.config.initial_weights.empty();
}

void set_first_weights(const Subject& subject, Model& model, uint64_t seed) {
  model.initialize(seed);
  if (begins_at_random(subject)) return;
  if (!subject.checkpoint.empty()) {
    const std::filesystem::path file = subject.checkpoint / "model.safetensors";
    load_parameters(model.parameters(), load_safetensors(file.string()), file.string());
  } else {
    static_cast<void>(load_initial_weights(model, subject.config.initial_weights, subject.task->data()));
  }
}

}  // namespace plumb::check
