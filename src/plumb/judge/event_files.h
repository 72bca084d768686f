// Runs from TensorBoard's event files.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include "plumb/judge/run_record.h"

namespace plumb {

/// Whether a file is named as an event file: events.out.tfevents.….
bool is_event_file(const std::filesystem::path& file);

/// What one file holds.
struct EventFile {
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  RunRecord record;
  double restart = kNever;  // the step from which earlier files do not count
  double begin = kNever, end = -kNever;
  double stride = 0;    // between its first steps
  std::string stamp{};  // of the file when it was read
};
using EventFiles = std::map<std::filesystem::path, EventFile>;

/// The run in a directory's event files: scalars, as numbers or as tensors of one, and the hyperparameters that
/// `SummaryWriter.add_hparams` wrote. The files are read in the order of their names, which begin with the time, unless
/// their steps show that the clock went back. A file's restart drops earlier points from its step on. A record cut off
/// by a kill ends its file. `known`: files that were read before; those that have changed are read again. Throws Error,
/// naming the file, on one with a wrong checksum.
RunRecord read_event_files(const std::filesystem::path& directory, EventFiles& known);

}  // namespace plumb
