// Errors about what a file contains name the file.
#pragma once

#include <fmt/format.h>

#include <string>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb {

/// Returns the result of `read`, which interprets the content of `file`. An error of it names the file.
template <typename Read>
auto about_file(const std::string& file, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_shape(file, error);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file, error.what()), error.hint());
  }
}

}  // namespace plumb
