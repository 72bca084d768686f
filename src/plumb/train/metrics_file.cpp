#include "plumb/train/metrics_file.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/text.h"

namespace plumb {

std::vector<TrainPoint> read_metrics(const std::filesystem::path& path) {
  std::vector<TrainPoint> points;
  if (!std::filesystem::exists(path)) return points;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) break;
    if (!json.contains("loss")) continue;  // the first or last line
    try {
      points.push_back(point_from_json(json));
    } catch (const Json::exception& error) {
      throw_unexpected_shape(path, error);
    }
  }
  return points;
}

MetricsFile::MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history) : path_(path) {
  write_file_atomic(path, [&](std::ostream& out) {
    out << make_document("metrics", 1).dump() << '\n';
    for (const TrainPoint& point : history) out << to_json(point).dump() << '\n';
  });
  out_.open(path, std::ios::binary | std::ios::app);
}

void MetricsFile::add(const TrainPoint& point) { write(to_json(point)); }

void MetricsFile::end(const TrainResult& result) {
  Json line;
  line["step"] = result.steps;
  line["outcome"] = result.outcome;
  write(line);
}

void MetricsFile::write(const Json& line) {
  out_ << line.dump() << '\n' << std::flush;
  if (!out_) throw Error(fmt::format("{}: write failed", path_.string()), "is the disk full?");
}

}  // namespace plumb
