#include "plumb/run/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/progress.h"
#include "plumb/base/text.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSetAside = ".set-aside";

std::string name_of(int64_t step) { return fmt::format("{}{:06}", kPrefix, step); }

std::map<int64_t, fs::path> steps_in(const fs::path& directory) {
  std::map<int64_t, fs::path> found;
  if (!fs::is_directory(directory)) return found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::optional<int64_t> step = step_of(entry.path());
    if (step && entry.is_directory()) found.emplace(*step, entry.path());
  }
  return found;
}

/// Where something really is, for messages: a run may be reached by way of an open descriptor.
std::string real_path(const fs::path& path) { return fs::weakly_canonical(path).string(); }

/// Throws Error if a file of a checkpoint is missing or not as state.json says.
void check_file(const fs::path& checkpoint, const std::string& name, const FileMark& written) {
  const fs::path file = checkpoint / name;
  if (!fs::exists(file)) throw Error(fmt::format("{} is missing", name));
  if (!fs::is_regular_file(fs::symlink_status(file))) throw Error(fmt::format("{} is no regular file", name));
  const FileMark found = mark_of(file);
  if (found.bytes != written.bytes)
    throw Error(fmt::format("{} has {} bytes instead of {}", name, found.bytes, written.bytes));
  if (found != written) throw Error(fmt::format("{} has changed: its checksum is wrong", name));
}

std::optional<FileMark> metrics_of(const fs::path& checkpoint) {
  const Json state = read_sealed(checkpoint / "state.json");
  return state.contains("metrics") ? std::optional(from_described_json<FileMark>(state["metrics"])) : std::nullopt;
}

/// Renames an unusable checkpoint, so that it is not mistaken for a usable one.
void set_aside(const fs::path& checkpoint) {
  const fs::path aside = checkpoint.string() + std::string(kSetAside);
  if (fs::exists(aside)) remove_directory_atomic(aside);
  fs::rename(checkpoint, aside);
}

/// Writes a snapshot to the directory `name` of a run. Throws Error that names the run's last good checkpoint.
void write_complete(const fs::path& run, const fs::path& name, const Snapshot& snapshot,
                    const std::optional<FileMark>& metrics) {
  try {
    write_directory_atomic(run / name, "checkpoint",
                           [&](const fs::path& directory) { write_snapshot(snapshot, directory, metrics); });
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const auto all = checkpoints_of(run);
    throw Error(fmt::format("{}; {}", error.what(),
                            all.empty() ? "the run has no checkpoint yet"
                                        : "the last good checkpoint is " + all.rbegin()->second.string()),
                ours != nullptr ? ours->hint() : "");
  }
}

/// Copies an intact checkpoint of this step to best/. Returns its path; empty if none is left.
fs::path copy_to_best(const fs::path& run, int64_t step) {
  for (const fs::path& kept : {run / "checkpoints" / name_of(step), run / "best-checkpoints" / name_of(step)}) {
    if (!fs::exists(kept) || !damage_of(kept).empty()) continue;
    write_directory_atomic(run / "best", "checkpoint", [&](const fs::path& copy) {
      for (const auto& entry : fs::directory_iterator(kept)) {
        if (!fs::is_regular_file(entry.symlink_status())) continue;
        std::ifstream from(entry.path(), std::ios::binary);
        write_file_atomic(copy / entry.path().filename(), [&from](std::ostream& to) { to << from.rdbuf(); });  // synced
      }
    });
    return kept;
  }
  return {};
}

}  // namespace

std::optional<int64_t> step_of(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename().string();
  if (!name.starts_with(kPrefix)) return {};
  const auto step = parse_number<int64_t>(std::string_view(name).substr(kPrefix.size()));
  return step && *step >= 0 ? step : std::nullopt;
}

std::map<int64_t, fs::path> checkpoints_of(const fs::path& run) { return steps_in(run / "checkpoints"); }
std::map<int64_t, fs::path> best_checkpoints_of(const fs::path& run) { return steps_in(run / "best-checkpoints"); }

std::string damage_of(const fs::path& checkpoint, const std::string& only) {
  try {
    (void)metrics_of(checkpoint);
    for (const auto& [name, mark] : files_of(read_sealed(checkpoint / "state.json")))
      if (only.empty() || name == only) check_file(checkpoint, name, mark);
    return {};
  } catch (const std::exception& error) {  // a damaged file may contain anything
    return error.what();
  }
}

std::optional<ResumePoint> find_resume_point(const fs::path& run) {
  const auto all = checkpoints_of(run);
  const fs::path history = run / "metrics.jsonl";
  const bool has_history = fs::exists(history);
  std::vector<std::string> troubles;
  std::vector<fs::path> unusable;
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    const fs::path& checkpoint = each->second;
    std::string trouble = damage_of(checkpoint);
    std::optional<FileMark> metrics;
    if (trouble.empty()) {
      metrics = metrics_of(checkpoint);
      if (!has_history) metrics.reset();
      if (metrics && mark_of_beginning(history, metrics->bytes) != *metrics)
        trouble = "metrics.jsonl has changed before this step";
    }
    if (!trouble.empty()) {
      troubles.push_back(checkpoint.filename().string() + ": " + trouble);
      unusable.push_back(checkpoint);
      continue;
    }
    if (!has_history) warn(fmt::format("{}: is missing; the run continues without its history", real_path(history)));
    for (const fs::path& path : unusable) set_aside(path);
    for (const std::string& line : troubles)
      warn(fmt::format("{}: checkpoint {}; going back to {}", real_path(run), line, checkpoint.filename().string()));
    return ResumePoint{checkpoint, metrics};
  }
  if (all.empty()) return {};
  throw Error(fmt::format("{}: no checkpoint is intact: {}", run.string(), join(troubles, "; ")),
              "restore one from a copy, or train again in another directory; if only metrics.jsonl has changed, remove "
              "it to continue without the history");
}

void write_checkpoint(const fs::path& run, const Snapshot& snapshot, const FileMark& metrics) {
  write_complete(run, fs::path("checkpoints") / name_of(snapshot.step), snapshot, metrics);
}

void remove_later_checkpoints(const fs::path& run, int64_t step) {
  for (const auto& [number, path] : checkpoints_of(run)) {
    if (number > step) remove_directory_atomic(path);
  }
}

void remove_old_checkpoints(const fs::path& run, int64_t step, const Retention& retention) {
  std::vector<fs::path> passing;  // those kept only while they are among the newest, newest first
  const auto all = checkpoints_of(run);
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    const bool forever = std::binary_search(retention.permanent.begin(), retention.permanent.end(), each->first);
    if (each->first <= step && each->first != retention.rollback && !forever) passing.push_back(each->second);
  }
  // At least the newest of these stays.
  for (size_t i = static_cast<size_t>(std::max<int64_t>(retention.last, 1)); i < passing.size(); ++i)
    remove_directory_atomic(passing[i]);
  for (const auto& [number, path] : best_checkpoints_of(run)) {
    if (!contains(retention.best, number)) remove_directory_atomic(path);
  }
  if (!fs::is_directory(run / "checkpoints")) return;
  std::vector<fs::path> passed;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kSetAside)) continue;
    const std::optional<int64_t> number = step_of(name.substr(0, name.size() - kSetAside.size()));
    if (number && *number <= step) passed.push_back(entry.path());
  }
  for (const fs::path& path : passed) remove_directory_atomic(path);
}

void check_best(const fs::path& run, int64_t step, const std::vector<int64_t>& list) {
  for (const int64_t each : list) {
    const fs::path kept = run / "best-checkpoints" / name_of(each);
    const std::string damage = damage_of(kept);
    if (!damage.empty()) warn(fmt::format("{}: {}", real_path(kept), damage));
  }
  if (step == 0) return;
  const fs::path best = run / "best";
  const std::string damage = fs::exists(best) ? damage_of(best) : "is missing";
  if (damage.empty()) return;
  if (const fs::path kept = copy_to_best(run, step); !kept.empty()) {
    warn(fmt::format("{}: {}; restored from {}", real_path(best), damage, real_path(kept)));
    return;
  }
  warn(fmt::format("{}: {}; step {} was the best so far", real_path(best), damage, step));
}

void return_best(const fs::path& run, int64_t step, int64_t best_step) {
  const fs::path best = run / "best";
  if (!fs::exists(best) || !damage_of(best).empty()) return;  // reported by check_best
  const auto found = to_count(read_sealed(best / "state.json").at("step"));
  if (found <= step) return;
  if (best_step == 0) return remove_directory_atomic(best);
  if (copy_to_best(run, best_step).empty())
    warn(fmt::format("{}: is from step {}, which was undone; the best of the remaining steps, {}, was not kept",
                     real_path(best), found, best_step));
}

void write_best(const fs::path& run, const Snapshot& snapshot) { write_complete(run, "best", snapshot, {}); }

void write_among_best(const fs::path& run, const Snapshot& snapshot) {
  write_complete(run, fs::path("best-checkpoints") / name_of(snapshot.step), snapshot, {});
}

}  // namespace plumb
