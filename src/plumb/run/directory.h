// The run directory: a training run's configuration and checkpoints; see docs/formats/run.md.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/run/config.h"

namespace plumb {

/// The configuration of a run directory, or of a folder with a model of another library (run/foreign_models.h).
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
/// average of checkpoints (run/checkpoint_average.h), an imported model (interop/import.h), or a folder with a model
/// of another library, which is both run and checkpoint. Throws Error if it is none of these.
RunAndCheckpoint locate_run(const std::string& name);

/// Throws Error unless `out` is free or contains a run with this outcome, which is no training run.
void require_replaceable(const std::filesystem::path& out, RunOutcome outcome);

/// The weights in a checkpoint, or in a folder with a model of another library.
NamedTensors weights_in(const std::filesystem::path& checkpoint);

/// The model of a run at its latest checkpoint, or at the given one.
std::unique_ptr<Model> load_model(const std::filesystem::path& run);
std::unique_ptr<Model> load_model(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

}  // namespace plumb
