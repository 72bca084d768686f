// The checkpoints of a run directory: finding them, checking that they are intact, and deciding which to keep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/run/seal.h"
#include "plumb/run/snapshot.h"

namespace plumb {

/// The step of a checkpoint from its name, "step-000123"; empty for any other name, such as a temporary one left by a
/// kill.
std::optional<int64_t> step_of(const std::filesystem::path& checkpoint);

/// The complete checkpoints in checkpoints/ and in best-checkpoints/, by step. Other names are ignored.
std::map<int64_t, std::filesystem::path> checkpoints_of(const std::filesystem::path& run);
std::map<int64_t, std::filesystem::path> best_checkpoints_of(const std::filesystem::path& run);

/// Describes the damage to a checkpoint: a file that is missing or has the wrong size or checksum; or the damage to
/// state.json and one of its files. Empty if there is none.
std::string damage_of(const std::filesystem::path& checkpoint, const std::string& only = {});

/// Where a run resumes.
struct ResumePoint {
  std::filesystem::path checkpoint;
  /// The part of metrics.jsonl that belongs to the checkpoint; absent if metrics.jsonl is missing.
  std::optional<FileMark> metrics;
};

/// Finds the newest intact checkpoint whose part of metrics.jsonl is intact as well. Warns about newer ones, stating
/// the damage, and renames them to NAME.set-aside. Empty if the run has no checkpoint; throws Error if none of its
/// checkpoints is intact.
std::optional<ResumePoint> find_resume_point(const std::filesystem::path& run);

/// Which checkpoints are kept.
struct Retention {
  int64_t last = 1;                // number of newest checkpoints, not counting `permanent` and `rollback`; at least 1
  std::vector<int64_t> permanent;  // steps whose checkpoints are kept for good, ascending
  std::vector<int64_t> best;       // steps in best-checkpoints/
  int64_t rollback = 0;            // step that a rollback returns to
};

/// Writes a checkpoint of a run; removes none. Throws Error that names the last good checkpoint.
void write_checkpoint(const std::filesystem::path& run, const Snapshot& snapshot, const FileMark& metrics);

/// Removes the checkpoints up to `step` that `retention` does not keep, and those set aside up to there. The checkpoint
/// of `step` must be intact.
void remove_old_checkpoints(const std::filesystem::path& run, int64_t step, const Retention& retention);

/// Removes the checkpoints after `step`, which a rollback has undone.
void remove_later_checkpoints(const std::filesystem::path& run, int64_t step);

/// Checks best/ of a run whose best evaluation was at `step` (0: none yet), and the steps `list` in best-checkpoints/;
/// warns about damage. Restores best/ from another checkpoint of its step if possible.
void check_best(const std::filesystem::path& run, int64_t step, const std::vector<int64_t>& list);

/// After a rollback to `step`: if best/ is from a later step, which is undone, replaces it by the checkpoint of
/// `best_step`, the best evaluation up to `step`, or removes it if best_step is 0. If no checkpoint of best_step is
/// left, warns and leaves best/ as it is.
void return_best(const std::filesystem::path& run, int64_t step, int64_t best_step);

/// Writes a checkpoint as best/ of a run or, named by its step, into best-checkpoints/.
void write_best(const std::filesystem::path& run, const Snapshot& snapshot);
void write_among_best(const std::filesystem::path& run, const Snapshot& snapshot);

}  // namespace plumb
