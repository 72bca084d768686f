// The checkpoints of a run directory: which there are, whether they are intact, and which are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/train/seal.h"
#include "plumb/train/snapshot.h"

namespace plumb {

/// The step of a checkpoint, by its name, "step-000123"; nothing for any other name, such as one left by a kill.
std::optional<int64_t> step_of(const std::filesystem::path& checkpoint);

/// Complete checkpoints by step, those in checkpoints/ and those in best-checkpoints/. Names that are not a step's are
/// passed over.
std::map<int64_t, std::filesystem::path> checkpoints_of(const std::filesystem::path& run);
std::map<int64_t, std::filesystem::path> best_checkpoints_of(const std::filesystem::path& run);

/// What is wrong with a checkpoint: a file that is missing, shorter than written, or has another checksum. Empty if it
/// is intact. In a checkpoint of a release that stored no checksums, the files must be there and have their format.
std::string damage_of(const std::filesystem::path& checkpoint);

/// Where a run resumes.
struct ResumePoint {
  std::filesystem::path checkpoint;
  /// The part of metrics.jsonl that the checkpoint counts on; absent in checkpoints of earlier releases, and if
  /// metrics.jsonl is missing.
  std::optional<FileMark> metrics;
};

/// The newest intact checkpoint whose part of metrics.jsonl is intact, too. Warns about newer ones, naming what is
/// wrong with them, and renames them to NAME.set-aside. Returns nothing if the run has no checkpoint; throws Error if
/// there are some, but none is intact.
std::optional<ResumePoint> find_resume_point(const std::filesystem::path& run);

/// Which checkpoints are kept besides the newest.
struct Retention {
  int64_t last = 1;           // this many of the newest
  std::vector<int64_t> kept;  // all those of these steps, in order
  std::vector<int64_t> best;  // of best-checkpoints/: these steps
  int64_t rollback = 0;       // the one of this step, to which a rollback returns
};

/// Writes the checkpoint of a run, and removes those that are not kept. Throws Error that names the last good one.
void write_checkpoint(const std::filesystem::path& run, const Snapshot& snapshot, const FileMark& metrics);

/// Removes the checkpoints that are not kept up to `step`, which is that of an intact one, and what was set aside.
void remove_old_checkpoints(const std::filesystem::path& run, int64_t step, const Retention& retention);

/// Removes the checkpoints of later steps than `step`, which a rollback has undone.
void remove_later_checkpoints(const std::filesystem::path& run, int64_t step);

/// Checks best/ of a run whose best evaluation was at `step`, and best-checkpoints/ with those of `list`; warns about
/// damage. Restores best/ from another checkpoint of that step, if possible.
void check_best(const std::filesystem::path& run, int64_t step, const std::vector<int64_t>& list);

/// After a rollback to `step`: best/ of a later step, which is undone, becomes that of the best evaluation until then,
/// at `best_step`; it is removed if that is 0. Warns if no checkpoint of that step is left: then best/ stays.
void return_best(const std::filesystem::path& run, int64_t step, int64_t best_step);

/// Writes a copy of a checkpoint as best/ of a run or, by its step, into best-checkpoints/.
void write_best(const std::filesystem::path& run, const Snapshot& snapshot);
void write_one_of_the_best(const std::filesystem::path& run, const Snapshot& snapshot);

}  // namespace plumb
