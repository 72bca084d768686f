// What a study has measured already, a JSON file each: an interrupted study continues where it stopped.
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

  /// The result of an earlier call with the same name and settings, else that of `measure`, which is then kept in
  /// DIR/NAME.json. Every number of a report can be traced to such a file. What is not finite is null there, and null
  /// is returned for it.
  Json get(const std::string& name, const Json& settings, const std::function<Json()>& measure);

  /// The same of a struct with to_json(result) and from_json(json, result).
  template <typename Measure, typename Result = std::invoke_result_t<const Measure&>>
  requires(!std::same_as<Result, Json>) Result
      get(const std::string& name, const Json& settings, const Measure& measure) {
    const std::function<Json()> as_json = [&measure] { return to_json(measure()); };
    return get(name, settings, as_json).template get<Result>();
  }

  /// How many results were found and how many were measured now.
  [[nodiscard]] int64_t found() const { return found_; }
  [[nodiscard]] int64_t measured() const { return measured_; }

 private:
  std::filesystem::path directory_;
  int64_t found_ = 0;
  int64_t measured_ = 0;
};

}  // namespace plumb
