// Makes writing to a closed connection an error, rather than a signal that ends the process.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace plumb {

/// During its lifetime, SIGPIPE is blocked in this thread, and permanently in the threads that it starts. For writes to
/// standard error, and for Gloo, which writes without MSG_NOSIGNAL and reports the error returned by the write. May be
/// used in a signal handler.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipeGuard() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    const int error = errno;
    const timespec now{};
    ::sigtimedwait(&pipe_, nullptr, &now);  // consumes a pending signal
    errno = error;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace plumb
