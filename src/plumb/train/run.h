// The run directory: a training run with its configuration, metrics and checkpoints; see docs/formats/run.md.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/train/trainer.h"

namespace plumb {

/// Trains in the run directory `out`: starts a run, resumes it from its latest checkpoint, or returns the result of a
/// run that has ended. Vocabulary sizes of 0 are taken from the data. Throws Error if `out` contains anything else, or
/// a run with a different configuration (naming the first key that differs); but data that have moved are read from
/// their new location, [watch], train.processes and train.micro_batch_tokens may differ, and a finished run continues
/// if its steps or epochs are raised. If train.processes is greater than 1, this process starts the others, and they
/// share its threads; if the environment specifies a rendezvous (rendezvous_of_environment), they join there instead,
/// in the number given there, and only process 0 writes. `hooks.checkpoint` and `hooks.best` are called after the files
/// are written.
TrainResult run_training(const RunConfig& config, const std::filesystem::path& out, const TrainHooks& hooks = {});

/// The configuration of a run directory. Throws Error if it is not one.
RunConfig load_run_config(const std::filesystem::path& run);

/// The directory of the last complete checkpoint of a run; of an average of checkpoints, or an imported model, the
/// directory itself. Throws Error if the run has no checkpoint.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run);

/// The location of trained weights.
struct RunAndCheckpoint {
  std::filesystem::path run;
  std::filesystem::path checkpoint;
};

/// Resolves a path given by the user: a run directory, which means its latest checkpoint, a checkpoint in one, or an
/// average of checkpoints (train/checkpoint_average.h), or an imported model (interop/import.h).
/// Throws Error if it is neither.
RunAndCheckpoint locate_run(const std::string& name);

/// The model of a run at its latest checkpoint, or at the given one.
std::unique_ptr<Model> load_model(const std::filesystem::path& run);
std::unique_ptr<Model> load_model(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

}  // namespace plumb
