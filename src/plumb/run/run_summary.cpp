#include "plumb/run/run_summary.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/descriptor.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/text.h"
#include "plumb/base/toml_text.h"
#include "plumb/run/about_file.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/seal.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

/// Calls `read`, and adds its error to the summary.
template <typename Read>
void attempt(RunSummary& summary, const Read& read) {
  try {
    read();
  } catch (const std::exception& error) {
    if (!summary.trouble.empty()) summary.trouble += "; ";
    summary.trouble += error.what();
  }
}

/// Takes the keys as a run has written them, all of them; of a damaged file, those that can be read.
void read_settings(RunSummary& summary) {
  const fs::path file = summary.directory / "config.toml";
  if (fs::exists(file)) summary.settings = key_values(read_file(file));
  (void)Config::from_string(read_sealed_text(file), file.string(), Libraries::ignored);  // throws if it is damaged
}

void read_history(RunSummary& summary) {
  RunRecords records = readable_records(summary.directory / "metrics.jsonl");
  summary.history = std::move(records.points);
  summary.watched = std::move(records.watched);
  summary.outcome = std::move(records.outcome);
  if (!records.damage.empty()) throw Error(records.damage);
}

void read_result(RunSummary& summary) {
  const fs::path file = summary.directory / "result.json";
  if (!fs::exists(file)) return;
  const Json document = read_json(file);
  const TrainResult result = about_file(file.string(), [&] { return TrainResult::from_json(document); });
  if (summary.history.size() < result.history.size()) {  // lines of metrics.jsonl are damaged
    summary.history = result.history;
    summary.watched = result.watched;
  }
  const int64_t last = summary.history.empty() ? 0 : summary.history.back().step;
  if (result.outcome == RunOutcome::stopped && last > result.steps) return;  // it was resumed after that, and killed
  summary.outcome = to_string(result.outcome);
  summary.step = result.steps;
  summary.seconds = result.seconds;
  summary.learning = result.learning;
}

void summarize_history(RunSummary& summary) {
  summary.metrics = last_metrics(summary.history);
  for (const TrainPoint& point : summary.history) {
    const std::optional<double> nll = point.metrics.get("valid_nll");
    if (!nll || !std::isfinite(*nll) || (summary.best_valid_nll && *nll >= *summary.best_valid_nll)) continue;
    summary.best_valid_nll = nll;
    summary.best_step = point.step;
  }
  if (summary.step == 0 && !summary.history.empty()) summary.step = summary.history.back().step;
  if (!summary.seconds && !summary.history.empty()) summary.seconds = training_seconds(summary.history).back();
}

/// Whether a process holds a lock of this file or directory. Asking shares the lock for an instant, which a process
/// that wants it alone has to expect (OpenRun does).
bool is_locked(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) return false;
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  struct flock lock {};  // the other kind of locks
  lock.l_type = F_WRLCK;
  return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void search(const fs::path& place, std::set<fs::path>& found) {
  if (is_run_directory(place)) {
    found.insert(place);
    return;
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, fs::directory_options::skip_permission_denied, ignored)) {
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored) && !is_unfinished(entry.path()))
      search(entry.path(), found);
  }
}

}  // namespace

void name_runs(std::vector<RunSummary>& runs) {
  std::vector<std::vector<std::string>> paths;
  for (const RunSummary& run : runs) {
    std::vector<std::string> parts;
    for (const fs::path& part : fs::absolute(run.directory).lexically_normal()) {
      if (!part.empty()) parts.push_back(part.string());
    }
    paths.push_back(parts);
  }
  size_t shared = 0;
  const auto all_share = [&](size_t depth) {
    return std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
      return depth + 1 < path.size() && path[depth] == paths.front()[depth];
    });
  };
  while (!paths.empty() && all_share(shared)) ++shared;
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].name = join({paths[i].begin() + static_cast<std::ptrdiff_t>(shared), paths[i].end()}, "/");
}

std::string RunSummary::setting(const std::string& key) const {
  const std::string* found = find_value(settings, key);
  return found == nullptr ? "" : *found;
}

std::vector<std::optional<double>> training_seconds(const std::vector<TrainPoint>& history) {
  std::vector<std::optional<double>> times;
  int64_t tokens = 0;
  double seconds = 0;
  for (const TrainPoint& point : history) {
    times.emplace_back();
    if (!(point.tokens_per_second > 0)) continue;
    seconds += static_cast<double>(point.tokens - tokens) / point.tokens_per_second;
    tokens = point.tokens;
    times.back() = seconds;
  }
  return times;
}

bool is_being_trained(const fs::path& run) {
  if (is_locked(run)) return true;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const bool lock = entry.path().filename().string().find("lock") != std::string::npos;
    if (lock && entry.is_regular_file(ignored) && is_locked(entry.path())) return true;
  }
  return false;
}

bool is_run_directory(const fs::path& directory) {
  std::error_code ignored;
  const fs::path mark = directory / "plumb.json";
  if (!fs::is_regular_file(mark, ignored)) return false;
  try {
    return read_json(mark).at("kind") == "run";
  } catch (const std::exception&) {
    return fs::exists(directory / "config.toml", ignored) || fs::exists(directory / "metrics.jsonl", ignored);
  }
}

RunSummary summarize_run(const fs::path& run) {
  RunSummary summary;
  summary.directory = run;
  attempt(summary, [&] { read_settings(summary); });
  attempt(summary, [&] { read_history(summary); });
  attempt(summary, [&] { read_result(summary); });
  if (is_being_trained(run)) {
    summary.outcome = "running";
    summary.step = 0;  // the result is from before it was resumed
    summary.seconds = std::nullopt;
  }
  summarize_history(summary);
  if (summary.outcome.empty()) {
    const bool unknown = !summary.trouble.empty() && summary.history.empty();
    summary.outcome = unknown ? "unreadable" : "unfinished";
  }
  std::vector<RunSummary> alone = {summary};
  name_runs(alone);
  return alone.front();
}

bool contains_runs(const fs::path& place) {
  std::set<fs::path> found;
  search(place, found);
  return !found.empty();
}

std::vector<fs::path> find_runs(const std::vector<std::string>& places) {
  const char* hint = "name runs of `plumb train`, or a directory with runs";
  std::vector<fs::path> runs;
  std::set<fs::path> known;
  for (const std::string& place : places) {
    if (!fs::is_directory(place)) throw Error(fmt::format("{}: no such directory", place), hint);
    std::set<fs::path> found;
    search(place, found);
    if (found.empty()) throw Error(fmt::format("{}: contains no runs", place), hint);
    for (const fs::path& run : found) {
      if (known.insert(fs::weakly_canonical(run)).second) runs.push_back(run);
    }
  }
  return runs;
}

std::vector<RunSummary> read_runs(const std::vector<std::string>& places) {
  std::vector<RunSummary> runs;
  for (const fs::path& run : find_runs(places)) runs.push_back(summarize_run(run));
  name_runs(runs);
  return runs;
}

std::vector<std::string> differing_keys(const std::vector<RunSummary>& runs) {
  std::vector<std::string> keys;
  for (const RunSummary& run : runs) {
    if (run.settings.empty()) continue;
    for (const auto& [key, value] : run.settings) {
      if (contains(keys, key)) continue;
      const bool differs = std::any_of(runs.begin(), runs.end(), [&, &key = key, &value = value](const auto& other) {
        return !other.settings.empty() && other.setting(key) != value;
      });
      if (differs) keys.push_back(key);
    }
  }
  return keys;
}

std::string last_key_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::vector<std::string> task_metrics(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) {
      if (!name.starts_with("valid_") && !contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace plumb
