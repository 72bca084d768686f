// What a study has measured already, a JSON file each: an interrupted study goes on where it stood.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "plumb/base/json.h"

namespace plumb {

class Measurements {
 public:
  explicit Measurements(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// The result of an earlier call with the same name and settings, else that of `measure`, which is then kept in
  /// DIR/NAME.json. Every number of a report can be traced to such a file.
  Json get(const std::string& name, const Json& settings, const std::function<Json()>& measure);

  /// How many results were found and how many were measured now.
  [[nodiscard]] int64_t found() const { return found_; }
  [[nodiscard]] int64_t measured() const { return measured_; }

 private:
  std::filesystem::path directory_;
  int64_t found_ = 0;
  int64_t measured_ = 0;
};

}  // namespace plumb
