// A study's finished measurements, one JSON file each, so that an interrupted study can resume.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>

#include "plumb/base/json.h"

namespace plumb {

class Measurements {
 public:
  explicit Measurements(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns the result of an earlier call with the same name and settings, or else calls `measure` and keeps its
  /// result in DIR/NAME.json. Every number in a report can be traced to such a file. Values that are not finite are
  /// null in the file and in the returned result.
  Json get(const std::string& name, const Json& settings, const std::function<Json()>& measure);

  /// The same for a struct with to_json(result) and from_json(json, result).
  template <typename Measure, typename Result = std::invoke_result_t<const Measure&>>
  requires(!std::same_as<Result, Json>) Result
      get(const std::string& name, const Json& settings, const Measure& measure) {
    const std::function<Json()> as_json = [&measure] { return to_json(measure()); };
    return get(name, settings, as_json).template get<Result>();
  }

  /// The number of results that were read from files, and of those that were measured.
  [[nodiscard]] int64_t found() const { return found_; }
  [[nodiscard]] int64_t measured() const { return measured_; }

 private:
  std::filesystem::path directory_;
  int64_t found_ = 0;
  int64_t measured_ = 0;
};

}  // namespace plumb
