// Signals that end a long command after its current step.
#pragma once

#include <csignal>

namespace plumb::app {

/// During its lifetime, the first SIGINT or SIGTERM is remembered, for the command to end after its current step; one
/// that comes two seconds later or more, of either kind, kills the process. One at a time.
class InterruptGuard {
 public:
  /// `acknowledgment`: the line written on the first signal, of static lifetime.
  explicit InterruptGuard(const char* acknowledgment);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal received; 0 if there was none.
  [[nodiscard]] static int signal();

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

}  // namespace plumb::app
