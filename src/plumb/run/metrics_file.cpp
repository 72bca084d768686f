#include "plumb/run/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json_fields.h"
#include "plumb/run/about_file.h"

namespace plumb {
namespace {

/// Adds what a line says to the records. Throws Error if it is not what a run writes.
void take_line(const Json& json, RunRecords& records) {
  if (!json.is_object()) throw Error("is no JSON object");
  if (json.contains("loss")) records.points.push_back(from_described_json<TrainPoint>(json));
  if (json.contains("watch")) records.watched.push_back(watch_record_from_json(json));
  if (json.contains("trouble")) records.troubles.push_back(from_described_json<TroubleRecord>(json));
}

/// The step at which a record is sorted in: a rollback comes right after the lines of the checkpoint it returns to.
int64_t place_of(const TroubleRecord& record) { return record.to.value_or(record.step - 1) + 1; }

}  // namespace

RunRecords readable_records(const std::filesystem::path& path) {
  RunRecords records;
  if (!std::filesystem::exists(path)) return records;
  const std::string text = read_file(path, kLogFile);
  int64_t number = 0, damaged = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    ++number;
    if (line.empty()) continue;
    const Json json = parse_or_discard(line);
    const bool ended = json.is_object() && json.contains("outcome") && json["outcome"].is_string();
    records.outcome = ended ? json["outcome"].get<std::string>() : "";
    if (end == text.size() && json.is_discarded()) break;  // cut by a kill
    try {
      about_file(fmt::format("{}: line {}", path.string(), number), [&] { take_line(json, records); });
    } catch (const Error& error) {
      if (damaged++ == 0) records.damage = error.what();
    }
  }
  if (damaged > 1) records.damage += fmt::format(" (and {} more)", damaged - 1);
  return records;
}

RunRecords read_records(const std::filesystem::path& path) {
  RunRecords records = readable_records(path);
  if (records.damage.empty()) return records;
  throw Error(records.damage, "restore the file from a copy; a run can be continued without it");
}

MetricsFile::MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history,
                         const std::vector<WatchRecord>& watched, const std::vector<TroubleRecord>& troubles)
    : path_(path) {
  write_file_atomic(path, [&](std::ostream& out) {
    out << make_document("metrics", 1).dump() << '\n';
    // In the order in which a run writes them: for each step, trouble, watch record, point.
    auto record = watched.begin();
    auto trouble = troubles.begin();
    const auto write_troubles = [&](int64_t up_to) {
      for (; trouble != troubles.end() && place_of(*trouble) <= up_to; ++trouble)
        out << described_json(*trouble).dump() << '\n';
    };
    const auto write_records = [&](int64_t up_to) {
      for (; record != watched.end() && record->step <= up_to; ++record) {
        write_troubles(record->step);
        out << to_json(*record).dump() << '\n';
      }
      write_troubles(up_to);
    };
    for (const TrainPoint& point : history) {
      write_records(point.step);
      out << described_json(point).dump() << '\n';
    }
    write_records(std::numeric_limits<int64_t>::max());
  });
  mark_ = mark_of(path);
  open();
}

MetricsFile::MetricsFile(const std::filesystem::path& path, const FileMark& mark) : path_(path), mark_(mark) {
  const std::string content = read_file(path, kLogFile);
  if (content.size() != mark.bytes) write_file_atomic(path, std::string_view(content).substr(0, mark.bytes));
  open();
}

void MetricsFile::open() {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!file_.is_open()) throw write_failure(path_.string());
}

void MetricsFile::sync() const {
  if (!file_.sync())
    throw Error(fmt::format("{}: cannot be synced: {}", path_.string(), std::strerror(errno)), "is the disk full?");
}

void MetricsFile::add(const TrainPoint& point) { write(described_json(point)); }

void MetricsFile::add(const WatchRecord& record) { write(to_json(record)); }

void MetricsFile::add(const TroubleRecord& record) { write(described_json(record)); }

void MetricsFile::end(const TrainResult& result) {
  Json line;
  line["step"] = result.steps;
  line["outcome"] = to_string(result.outcome);
  write(line);
}

void MetricsFile::write(const Json& line) {
  const std::string text = line.dump() + '\n';
  if (!file_.write(text)) throw write_failure(path_.string());
  mark_.bytes += text.size();
  mark_.checksum = crc32_of(text, mark_.checksum);
}

}  // namespace plumb
