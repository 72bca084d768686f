// The only error type: what happened and where, and a hint about what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace plumb {

/// Thrown when user input, a file or the machine makes a request impossible. plumb_main() catches it, prints
/// `plumb: error: WHAT` and `hint: HINT`, and returns exit status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, std::string hint = {}) : std::runtime_error(what), hint_(std::move(hint)) {}

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
