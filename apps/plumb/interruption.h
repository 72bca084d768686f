// Signals that end a long command after its current step.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace plumb::app {

/// During its lifetime, the first SIGINT, SIGTERM or SIGHUP is remembered, for the command to end after its current
/// step; one that comes two seconds later or more, of any kind, kills the process. Those that whoever started the
/// process has it ignore, such as nohup or a shell that runs it in the background, stay ignored. One at a time.
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
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace plumb::app
