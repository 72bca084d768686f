// Makes writing to a closed connection an error, rather than a signal that ends the process.
#pragma once

#include <csignal>
#include <ctime>

namespace plumb {

/// During its lifetime, SIGPIPE is blocked in this thread, and permanently in the threads that it starts. Gloo writes
/// without MSG_NOSIGNAL and reports the error returned by the write.
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
    ::sigtimedwait(&pipe_, nullptr, &now);  // consumes a pending signal
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace plumb
