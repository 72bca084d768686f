// Writing to a connection that the other side has closed: an error to report, not a signal that ends the process.
#pragma once

#include <csignal>
#include <ctime>

namespace plumb {

/// While it exists, SIGPIPE is blocked in this thread, and for good in the threads that it starts. Gloo writes without
/// MSG_NOSIGNAL and reports the error that the write returns.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipeGuard() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    const timespec now{};
    ::sigtimedwait(&pipe_, nullptr, &now);  // takes one that is pending
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace plumb
