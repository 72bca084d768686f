// A study's measurements: what is to be measured, and one JSON file for each that is finished, so that an interrupted
// study can resume.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// One measurement. `measure` owns what it uses, apart from the study's context, and may be called in any thread.
struct MeasurementRequest {
  std::string name;   // of its file
  std::string label;  // for people
  Json settings;      // everything that the result depends on
  std::function<Json()> measure;
  double work = 1;     // relative to other measurements, for the remaining time
  bool alone = false;  // not beside others: it measures time, or uses several processes
  int64_t stage = 0;   // made after all measurements of smaller stages, whose files it may read
};

class Measurements {
 public:
  explicit Measurements(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns the result of an earlier call with the same name and settings, or else measures and keeps the result in
  /// DIR/NAME.json. Every number in a report can be traced to such a file. Values that are not finite are null in the
  /// file and in the returned result. May be called for different names at the same time.
  Json get(const MeasurementRequest& request);

  /// Whether `get` would not measure.
  [[nodiscard]] bool has(const MeasurementRequest& request) const;

  /// The number of measurements made.
  [[nodiscard]] int64_t measured() const { return measured_; }

 private:
  std::filesystem::path directory_;
  std::atomic<int64_t> measured_ = 0;
};

/// Makes those measurements that do not exist yet, stage by stage, up to `jobs` of a stage side by side, which share
/// the program's threads; those of a stage that want to be alone come last. Shows their number and the remaining time.
/// After an exception nothing further is begun, and the first one is thrown once what runs has ended.
void make_all(Measurements& measurements, const std::vector<MeasurementRequest>& requests, int64_t jobs);

}  // namespace plumb
