#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/json_fields.h"
#include "plumb/judge/event_files.h"
#include "plumb/judge/rows.h"
#include "plumb/judge/run_record.h"
#include "plumb/run/run_summary.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

Rows rows_of_table(const fs::path& file) {
  return read_once([file](const TakeRow& take) {
    Record header;
    size_t count = 0;
    const auto take_record = [&](Record record) {
      if (++count == 1) {
        header = std::move(record);
        return;
      }
      if (record.size() != header.size())
        throw Error(fmt::format("{}, record {}: has {} fields, the header has {}", file.string(), count, record.size(),
                                header.size()));
      Row row;
      for (size_t column = 0; column < header.size(); ++column) {
        if (!is_missing(record[column])) row.emplace_back(header[column], std::move(record[column]));
      }
      take(row);
    };
    read_records(file, file.extension() == ".tsv" ? '\t' : ',', take_record);
  });
}

Rows rows_of_lines(const fs::path& file) {
  return read_once([file](const TakeRow& take) {
    LineReader lines(file, kLogFile);
    while (const auto line = lines.next()) {
      if (line->empty()) continue;
      const Json json = parse_log(*line);
      if (!json.is_object()) throw Error(fmt::format("{}, line {}: no JSON object", file.string(), lines.count()));
      take(row_of(json));
    }
  });
}

Rows rows_of_list(const fs::path& file) {
  constexpr InputLimits kList{.bytes = uint64_t{256} << 20};  // parsed, it takes ten times its size
  Json json = parse_log(read_file(file, kList));
  if (json.is_discarded()) throw Error(fmt::format("{}: is not valid JSON", file.string()));
  if (json.is_object() && json.contains("log_history")) json = Json(std::move(json["log_history"]));
  const auto is_object = [](const Json& one) { return one.is_object(); };
  if (!json.is_array() || std::none_of(json.begin(), json.end(), is_object))
    throw Error(fmt::format("{}: holds no list of objects, by itself or as \"log_history\"", file.string()));
  return [list = std::move(json)](const TakeRow& take) {
    for (const Json& one : list) {
      if (one.is_object()) take(row_of(one));
    }
  };
}

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
  for (const TrainPoint& point : run.history) {
    const Json values = described_json(point);
    add_numbers(record, static_cast<double>(point.step), values);
    if (values.contains("metrics")) add_numbers(record, static_cast<double>(point.step), values["metrics"]);
  }
  return record;
}

/// Nothing if the file is of no kind that this reads.
std::vector<RunRecord> records_in_file(const fs::path& file, const std::string& name,
                                       const std::vector<std::string>& keys) {
  const std::string kind = file.extension().string();
  if (kind == ".csv" || kind == ".tsv") return records_of(rows_of_table(file), name, keys);
  if (kind == ".jsonl" || kind == ".ndjson") return records_of(rows_of_lines(file), name, keys);
  if (kind == ".json") return records_of(rows_of_list(file), name, keys);
  return {};
}

/// The state of transformers' Trainer, of which a directory holds one and each of its checkpoints another.
bool is_trainer_state(const fs::path& file) {
  return file.filename() == "trainer_state.json" && !file.parent_path().filename().string().starts_with("checkpoint-");
}

bool holds_plumb_runs(const fs::path& directory) {
  if (is_run_directory(directory)) return true;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_directory() && is_run_directory(entry.path())) return true;
  }
  return false;
}

/// What of a directory cannot be read: damaged files, and those that are no logs.
class LeftOut {
 public:
  /// Whether `read` does not throw Error; keeps what it says otherwise.
  template <typename Read>
  bool reads(const Read& read) {
    try {
      read();
      return true;
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      errors_.push_back(error);
      return false;
    }
  }

  /// Sentences on all of it, of a directory in which other runs were found. Otherwise the first error is that of the
  /// directory.
  void add_notes(bool found, std::vector<std::string>& notes) const {
    if (!found && !errors_.empty()) throw Error(errors_.front());
    for (const Error& error : errors_) notes.push_back(fmt::format("left out: {}", error.what()));
  }

 private:
  std::vector<Error> errors_;
};

/// Runs from directories of event files. PyTorch's `SummaryWriter.add_hparams` writes a run's hyperparameters and final
/// metrics into a directory of their own within that of the run, to which they are added.
std::vector<RunRecord> records_of_events(const std::set<fs::path>& directories, LeftOut& left_out) {
  std::map<fs::path, RunRecord> records;  // a directory comes before those within
  for (const fs::path& directory : directories) {
    RunRecord record;
    if (!left_out.reads([&] { record = read_event_files(directory); })) continue;
    const auto parent = records.find(directory.parent_path());
    if (parent != records.end() && !record.settings.empty() && parent->second.settings.empty()) {
      parent->second.settings = std::move(record.settings);
      parent->second.series.merge(record.series);
    } else {
      records.emplace(directory, std::move(record));
    }
  }
  std::vector<RunRecord> runs;
  for (auto& [directory, record] : records) runs.push_back(std::move(record));
  return runs;
}

std::vector<RunRecord> records_in_directory(const fs::path& directory, const std::vector<std::string>& keys,
                                            std::vector<std::string>& notes) {
  std::vector<RunRecord> records;
  if (holds_plumb_runs(directory)) {
    for (const RunSummary& run : read_runs({directory.string()})) {
      records.push_back(record_of(run));
      if (!run.trouble.empty()) notes.push_back(run.trouble);
    }
    return records;
  }
  std::set<fs::path> with_events;
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    if (is_event_file(entry.path())) {
      with_events.insert(entry.path().parent_path());
    } else if (entry.path().extension() != ".json" || is_trainer_state(entry.path())) {
      files.insert(entry.path());
    }
  }
  LeftOut left_out;
  if (!with_events.empty()) {
    records = records_of_events(with_events, left_out);
  } else {
    for (const fs::path& file : files) {
      left_out.reads([&] {
        const std::string name = fs::relative(file, directory).string();
        for (RunRecord& record : records_in_file(file, name, keys)) records.push_back(std::move(record));
      });
    }
  }
  left_out.add_notes(!records.empty(), notes);
  return records;
}

}  // namespace

std::vector<RunRecord> read_run_records(const fs::path& place, const std::vector<std::string>& keys) {
  std::vector<std::string> notes;
  return read_run_records(place, keys, notes);
}

std::vector<RunRecord> read_run_records(const fs::path& place, const std::vector<std::string>& keys,
                                        std::vector<std::string>& notes) {
  if (!fs::exists(place)) throw Error(fmt::format("{}: does not exist", place.string()));
  std::vector<RunRecord> records;
  if (fs::is_directory(place)) {
    records = records_in_directory(place, keys, notes);
  } else if (is_event_file(place)) {
    records = {read_event_files(place.parent_path())};
  } else {
    records = records_in_file(place, place.filename().string(), keys);
  }
  if (records.empty())
    throw Error(fmt::format("{}: no runs were found", place.string()),
                "name a directory of runs, TensorBoard's event files, or a .csv, .tsv, .jsonl or .json file");
  return records;
}

}  // namespace plumb
