// The run directory: a training run's configuration and checkpoints; see docs/formats/run.md.
#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "plumb/base/descriptor.h"
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

/// The directory of a run that this process trains: open, and closed to other trainers until the end of the scope, or
/// of the process.
class OpenRun {
 public:
  /// `place`: an existing directory. Throws Error if another process trains there, and if what training writes is
  /// behind a symbolic link within the directory, since it may lead to anything. Warns if the file system has no locks.
  explicit OpenRun(std::filesystem::path place);

  /// A path by which this process, but no other, finds the directory wherever it is moved.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Where it is now: as it was called, unless it has been moved. Throws Error if it has been removed, or emptied.
  [[nodiscard]] std::filesystem::path place() const;

  /// The result of `work`. Its errors call the directory as it is called now, or say that it has been removed.
  template <typename Work>
  auto naming(const Work& work) const {
    try {
      return work();
    } catch (const std::exception& error) {
      rethrow_named(error);
    }
  }

 private:
  [[noreturn]] void rethrow_named(const std::exception& error) const;

  std::filesystem::path place_, path_;
  Descriptor directory_;
};

/// Throws Error unless `out` is free or contains a run with this outcome, which is no training run.
void require_replaceable(const std::filesystem::path& out, RunOutcome outcome);

/// The weights in a checkpoint, or in a folder with a model of another library.
NamedTensors weights_in(const std::filesystem::path& checkpoint);

/// The model of a run at its latest checkpoint, or at the given one.
std::unique_ptr<Model> load_model(const std::filesystem::path& run);
std::unique_ptr<Model> load_model(const std::filesystem::path& run, const std::filesystem::path& checkpoint);

}  // namespace plumb
