// The one error type: what happened and where, and a hint of what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace plumb {

/// Thrown wherever user input, a file or the machine makes a request impossible. Caught once, in main(), which prints
/// `plumb: error: WHAT` and `hint: HINT` and exits with status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, std::string hint = {}) : std::runtime_error(what), hint_(std::move(hint)) {}

  /// What the user can do about it; empty if nothing better than the message can be said.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string hint_;
};

/// Thrown where the command itself is wrong: an option, a key of --set, a name to choose from. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace plumb
