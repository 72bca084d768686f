// The run directory: a training run with its configuration, metrics and checkpoints. docs/formats/run.md has the files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/train/trainer.h"

namespace plumb {

/// Trains in the run directory `out`: begins, or goes on from its latest checkpoint, or returns the result of a run
/// that has ended. Vocabulary sizes of 0 are those of the data. Throws Error if `out` holds something else, or a run of
/// another configuration (naming the first differing key); but data that have moved are taken from where they are now,
/// and a run that has finished trains on if steps or epochs are raised. Where train.processes is more than 1, this process starts
/// the others, and they share its threads; where the environment names a meeting place (rendezvous_of_environment) they
/// meet there instead, their number is what it says, and all but process 0 write nothing. `hooks.checkpoint` and
/// `hooks.best` are called after the files are written.
TrainResult run_training(const RunConfig& config, const std::filesystem::path& out, const TrainHooks& hooks = {});

/// The configuration of a run directory. Throws Error if it is none.
RunConfig load_run_config(const std::filesystem::path& run);

/// The directory of the last complete checkpoint of a run. Throws Error if there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run);

/// Where trained weights lie.
struct RunAndCheckpoint {
  std::filesystem::path run;
  std::filesystem::path checkpoint;
};

/// The place that a user named: a run directory, of which the latest checkpoint is meant, or a checkpoint in one.
/// Throws Error if it is neither.
RunAndCheckpoint locate_run(const std::string& name);

/// The model of a run at its latest checkpoint, or at the given one.
std::unique_ptr<Model> load_model(const std::filesystem::path& run);
std::unique_ptr<Model> load_model(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

}  // namespace plumb
