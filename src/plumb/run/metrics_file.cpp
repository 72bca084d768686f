#include "plumb/run/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/text.h"
#include "plumb/run/about_file.h"

namespace plumb {
namespace {

/// The results of `take` for each line with this key, up to a line truncated by a kill.
template <typename Take>
auto lines_with(const std::filesystem::path& path, const char* key, const Take& take) {
  std::vector<decltype(take(Json()))> found;
  if (!std::filesystem::exists(path)) return found;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.empty()) continue;
    const Json json = parse_or_discard(line);
    if (!json.is_object()) break;
    if (json.contains(key)) found.push_back(about_file(path.string(), [&] { return take(json); }));
  }
  return found;
}

/// The step at which a record is sorted in: a rollback comes right after the lines of the checkpoint it returns to.
int64_t place_of(const TroubleRecord& record) { return record.to.value_or(record.step - 1) + 1; }

}  // namespace

std::vector<TrainPoint> read_metrics(const std::filesystem::path& path) {
  return lines_with(path, "loss", from_described_json<TrainPoint>);
}

std::vector<WatchRecord> read_watch_records(const std::filesystem::path& path) {
  return lines_with(path, "watch", watch_record_from_json);
}

std::vector<TroubleRecord> read_trouble_records(const std::filesystem::path& path) {
  return lines_with(path, "trouble", from_described_json<TroubleRecord>);
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

MetricsFile::MetricsFile(const std::filesystem::path& path, const FileMark& kept) : path_(path), mark_(kept) {
  const std::string content = read_file(path);
  if (content.size() != kept.bytes) write_file_atomic(path, std::string_view(content).substr(0, kept.bytes));
  open();
}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsFile::open() {
  out_.open(path_, std::ios::binary | std::ios::app);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
}

void MetricsFile::sync() const {
  // A file system without fsync is not an error.
  if (descriptor_ >= 0 && (::fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP)) return;
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
  out_ << text << std::flush;
  if (!out_) throw Error(fmt::format("{}: write failed", path_.string()), "is the disk full?");
  mark_.bytes += text.size();
  mark_.checksum = crc32_of(text, mark_.checksum);
}

}  // namespace plumb
