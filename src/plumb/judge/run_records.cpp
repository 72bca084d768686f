#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "plumb/judge/event_files.h"
#include "plumb/judge/log_file.h"
#include "plumb/judge/run_record.h"
#include "plumb/run/run_summary.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// The numbers of an object; null stands for one that is not finite.
void add_numbers(RunRecord& record, double step, const Json& object) {
  for (const auto& [metric, value] : object.items()) {
    if (value.is_number() || value.is_null()) record.series[metric].push_back({step, to_double(value)});
  }
}

/// A run of Plumb's. It has failed if it diverged or has learned nothing. Without label smoothing, valid_loss is
/// valid_nll.
RunRecord record_of(const RunSummary& run) {
  RunRecord record{.name = run.name.empty() ? run.directory.string() : run.name};
  for (const auto& [key, toml] : run.settings) {
    const bool quoted = toml.size() > 1 && toml.front() == '"' && toml.back() == '"';
    record.settings.emplace_back(key, quoted ? toml.substr(1, toml.size() - 2) : toml);
  }
  record.diverged = run.outcome == "diverged" || (run.learning && run.learning->learning == Learning::diverged);
  record.failed = record.diverged || (run.learning && run.learning->failed());
  if (const double most = run.learning ? run.learning->valid_frequencies.value_or(0) : 0; most > 0) {
    record.most["valid_nll"] = most;
    const std::string* smoothing = record.setting("train.label_smoothing");
    if (smoothing != nullptr && number_in(*smoothing) == 0.0) record.most["valid_loss"] = most;
  }
  record.ended = run.outcome == "finished" || run.outcome == "diverged";
  record.state = run.outcome;
  for (const TrainPoint& point : run.history) {
    const Json values = described_json(point);
    add_numbers(record, static_cast<double>(point.step), values);
    if (values.contains("metrics")) add_numbers(record, static_cast<double>(point.step), values["metrics"]);
  }
  return record;
}

/// Nothing if the file is of no kind that this reads.
std::vector<RunRecord> records_in_file(const fs::path& file, const std::string& name, const LogKeys& keys,
                                       LogFiles* known) {
  if (known == nullptr) return LogFile(file, name, keys).records();
  return known->files.try_emplace({file, name}, file, name, keys).first->second.records();
}

RunRecord record_of_events(const fs::path& directory, LogFiles* known) {
  EventFiles read;
  return read_event_files(directory, known == nullptr ? read : known->events);
}

/// Whether `read` throws no Error, as for damaged files and those that are no logs; keeps what it throws.
template <typename Read>
bool reads(std::vector<Error>& left_out, const Read& read) {
  try {
    read();
    return true;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    left_out.push_back(error);
    return false;
  }
}

/// Of a curve that PyTorch's `SummaryWriter.add_scalars("loss", {"train": …})` wrote into a directory of its own,
/// "loss_train" within that of the run: "loss/train". Empty for any other directory.
std::string curve_of(const fs::path& directory, const RunRecord& record) {
  if (record.series.size() != 1 || !record.settings.empty()) return {};
  const std::string metric = record.series.begin()->first;
  std::string prefix = metric + "_";
  std::replace(prefix.begin(), prefix.end(), '/', '_');
  const std::string name = directory.filename().string();
  return name.starts_with(prefix) ? metric + "/" + name.substr(prefix.size()) : "";
}

/// Marks directories that are parts of one run by the setting "part": training and validation, as Keras has them, or
/// the validation of the run in the directory above. Throws UsageError if they are not told apart by `keys`.
void mark_parts(std::map<fs::path, RunRecord>& records, const std::vector<std::string>& keys) {
  static constexpr std::array<std::string_view, 9> kParts = {"dev",      "eval", "evaluation", "test",      "train",
                                                             "training", "val",  "valid",      "validation"};
  std::map<fs::path, std::vector<fs::path>> by_run;
  for (const auto& [directory, record] : records) {
    if (contains(kParts, directory.filename().string())) by_run[directory.parent_path()].push_back(directory);
  }
  for (const auto& [run, parts] : by_run) {
    if (parts.size() + records.count(run) < 2) continue;
    std::vector<std::string> names;
    if (const auto own = records.find(run); own != records.end()) own->second.settings.emplace_back("part", ".");
    for (const fs::path& part : parts) {
      names.push_back(part.filename().string());
      records.at(part).settings.emplace_back("part", names.back());
    }
    if (!contains(keys, "part"))
      throw UsageError(fmt::format("{}: the directories {} are parts of one run", run.string(),
                                   (parts.size() > 1 ? "" : "., ") + join(names)),
                       fmt::format("choose one: --where part={}", names.back()));
  }
}

/// Runs from directories of event files. PyTorch's `SummaryWriter.add_hparams` writes a run's hyperparameters and final
/// metrics into a directory of their own within that of the run, to which they are added; so are curves of add_scalars.
std::vector<RunRecord> records_of_events(const std::set<fs::path>& directories, const std::vector<std::string>& keys,
                                         std::vector<Error>& left_out, LogFiles* known) {
  std::map<fs::path, RunRecord> records;  // a directory comes before those within
  for (const fs::path& directory : directories) {
    RunRecord record;
    if (!reads(left_out, [&] { record = record_of_events(directory, known); })) continue;
    const auto parent = records.find(directory.parent_path());
    const std::string curve = curve_of(directory, record);
    if (parent != records.end() && !curve.empty()) {
      parent->second.series[curve] = std::move(record.series.begin()->second);
    } else if (parent != records.end() && !record.settings.empty() && parent->second.settings.empty()) {
      parent->second.settings = std::move(record.settings);
      parent->second.series.merge(record.series);
    } else {
      records.emplace(directory, std::move(record));
    }
  }
  mark_parts(records, keys);
  std::vector<RunRecord> runs;
  for (auto& [directory, record] : records) runs.push_back(std::move(record));
  return runs;
}

/// The state of transformers' Trainer in the directory of a run, or that of its newest checkpoint if it was killed.
void keep_newest(std::map<fs::path, fs::path>& states, const fs::path& file) {
  const auto step = [](const fs::path& state) {
    const std::string folder = state.parent_path().filename().string();
    return folder.starts_with("checkpoint-") ? number_in(folder.substr(folder.find('-') + 1)).value_or(0) : HUGE_VAL;
  };
  const fs::path folder = file.parent_path();
  const auto [kept, added] = states.emplace(step(file) < HUGE_VAL ? folder.parent_path() : folder, file);
  if (step(file) > step(kept->second)) kept->second = file;
}

std::vector<RunRecord> records_in_directory(const fs::path& directory, const LogKeys& keys,
                                            std::vector<std::string>* notes, LogFiles* known) {
  std::vector<RunRecord> records;
  if (contains_runs(directory)) {
    for (const RunSummary& run : read_runs({directory.string()})) {
      records.push_back(record_of(run));
      if (!run.trouble.empty() && notes != nullptr) notes->push_back(run.trouble);
    }
    return records;
  }
  std::set<fs::path> with_events, files;
  std::map<fs::path, fs::path> states;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    if (is_event_file(entry.path())) {
      with_events.insert(entry.path().parent_path());
    } else if (entry.path().filename() == "trainer_state.json") {
      keep_newest(states, entry.path());
    } else if (entry.path().extension() != ".json" || holds_objects(entry.path())) {
      files.insert(entry.path());
    }
  }
  for (const auto& [run, state] : states) files.insert(state);
  std::vector<Error> left_out;
  if (!with_events.empty()) {
    records = records_of_events(with_events, keys.settings, left_out, known);
  } else {
    for (const fs::path& file : files) {
      reads(left_out, [&] {
        const std::string name = fs::relative(file, directory).string();
        for (RunRecord& record : records_in_file(file, name, keys, known)) records.push_back(std::move(record));
      });
    }
  }
  if (records.empty() && !left_out.empty()) throw Error(left_out.front());
  for (const Error& error : left_out) {
    if (notes != nullptr) notes->push_back(fmt::format("left out: {}", error.what()));
  }
  return records;
}

}  // namespace

std::vector<RunRecord> read_run_records(const fs::path& place, const LogKeys& keys, std::vector<std::string>* notes,
                                        LogFiles* known) {
  if (!fs::exists(place)) throw Error(fmt::format("{}: does not exist", place.string()));
  std::vector<RunRecord> records;
  if (fs::is_directory(place)) {
    records = records_in_directory(place.has_filename() ? place : place.parent_path(), keys, notes, known);
  } else if (is_event_file(place)) {
    records = {record_of_events(place.parent_path(), known)};
  } else {
    records = records_in_file(place, place.filename().string(), keys, known);
  }
  if (records.empty())
    throw Error(fmt::format("{}: no runs were found", place.string()),
                "name a directory of runs, TensorBoard's event files, or a .csv, .tsv, .jsonl or .json file; of a text log, "
                "say how a line reads: --line 'step {step}: train loss {train_loss}, val loss {val_loss}'");
  return records;
}

}  // namespace plumb
