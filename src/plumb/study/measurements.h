// A study's measurements: requests, and one JSON file for each finished measurement, so that an interrupted study can
// resume.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// One measurement. `measure` owns everything it uses except the study's context, and may be called on any thread.
struct MeasurementRequest {
  std::string name;   // of its file
  std::string label;  // shown with progress
  Json settings;      // everything that the result depends on
  std::function<Json()> measure;
  double work = 1;     // cost relative to other measurements, to estimate the remaining time
  bool alone = false;  // never concurrent with others: it measures time or uses several processes
  int64_t stage = 0;   // runs after all measurements of smaller stages, and may read their files
  /// Called with the result when its file is read, and with null to ask whether it was.
  std::function<bool(const Json* result)> keep{};
};

/// The measurements stored in one directory.
class Measurements {
 public:
  explicit Measurements(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns the stored result for this name and these settings, or else measures and stores the result in
  /// DIR/NAME.json. Every number in a report can be traced to one of these files. Values that are not finite are null
  /// in the file and in the returned result. Thread-safe for different names.
  Json get(const MeasurementRequest& request);

  /// Whether the result is stored, so that `get` would not measure.
  [[nodiscard]] bool has(const MeasurementRequest& request) const;

  /// The number of measurements made by this object.
  [[nodiscard]] int64_t measured() const { return measured_; }

 private:
  /// The result in the file, if it has one for these settings.
  std::optional<Json> stored(const MeasurementRequest& request) const;

  std::filesystem::path directory_;
  std::atomic<int64_t> measured_ = 0;
};

/// Makes all missing measurements, stage by stage. Within a stage, up to `jobs` run concurrently and divide the
/// program's threads; those marked `alone` follow one by one. Shows progress and the remaining time. After an exception
/// nothing more is started; the first exception is rethrown once running measurements have ended. `on_made` is called
/// after each, never by two threads at once. Returns how many were not missing.
int64_t make_all(Measurements& measurements, const std::vector<MeasurementRequest>& requests, int64_t jobs,
                 const std::function<void(const MeasurementRequest&)>& on_made = {});

}  // namespace plumb
