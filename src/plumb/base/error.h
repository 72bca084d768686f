// The only error type: what happened and where, and a hint about what to do.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "plumb/base/utf8.h"

namespace plumb {

/// The message, or its beginning and its end if it has more than 2,000 bytes: somebody has to read it, although a name
/// in a file may have a million letters.
inline std::string shortened(std::string_view message) {
  constexpr size_t kLongest = 2000;
  if (message.size() <= kLongest) return std::string(message);
  const size_t begin = beginning_of_character(message, kLongest / 2);
  const size_t end = next_beginning(message, message.size() - kLongest / 2);
  return std::string(message.substr(0, begin)).append(" … ").append(message.substr(end));
}

/// Thrown when user input, a file or the machine makes a request impossible. plumb_main() catches it, prints
/// `plumb: error: WHAT` and `hint: HINT`, and returns exit status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view what, std::string_view hint = {})
      : std::runtime_error(shortened(what)), hint_(shortened(hint)) {}

  /// What the user can do about it; empty if the message says it all.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string hint_;
};

/// Thrown if the command line is wrong: an option, a key in --set, or an unknown name. The exit status is 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace plumb
