// The run directory: a training run's configuration, metrics and checkpoints; see docs/formats/run.md.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/io/safetensors.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// Trains in the run directory `out`: starts a run, resumes it from its latest checkpoint, or returns the result of a
/// run that has ended. Vocabulary sizes of 0 are taken from the data. Throws Error if `out` contains anything else, or
/// a run with a different configuration, naming the first key that differs. These may differ: the location of the data,
/// or of initial weights that have moved; [watch]; train.processes, train.micro_batch_tokens and train.timeout; and
/// larger steps or epochs, with which a finished run continues. If train.processes is greater than 1, this process
/// starts the others, and they share its threads; if the environment specifies a rendezvous
/// (rendezvous_of_environment), that determines the processes instead. Only process 0 writes. `hooks.checkpoint`,
/// `hooks.best` and `hooks.one_of_the_best` are called after their files are written.
TrainResult run_training(const RunConfig& config, const std::filesystem::path& out, const TrainHooks& hooks = {});

/// The configuration of a run directory, or of a folder with a model of another library (train/foreign_models.h).
/// Throws Error if the directory is neither, or if config.toml is damaged.
RunConfig load_run_config(const std::filesystem::path& run);

/// The directory of a run's last complete checkpoint; for an average of checkpoints or an imported model, the directory
/// itself. Throws Error if the run has no checkpoint.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run);

/// The location of trained weights.
struct RunAndCheckpoint {
  std::filesystem::path run;
  std::filesystem::path checkpoint;
};

/// Resolves a path given by the user: a run directory, which means its latest checkpoint, a checkpoint in one, an
/// average of checkpoints (train/checkpoint_average.h), an imported model (interop/import.h), or a folder with a model
/// of another library, which is both run and checkpoint. Throws Error if it is none of these.
RunAndCheckpoint locate_run(const std::string& name);

/// The weights in a checkpoint, or in a folder with a model of another library.
NamedTensors weights_in(const std::filesystem::path& checkpoint);

/// The model of a run at its latest checkpoint, or at the given one.
std::unique_ptr<Model> load_model(const std::filesystem::path& run);
std::unique_ptr<Model> load_model(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

}  // namespace plumb
