#include "interruption.h"

#include <atomic>
#include <cstdint>
#include <ctime>

#include "plumb/base/progress.h"

namespace plumb::app {
namespace {

// The signal received, or 0, and when. The handler may run on any thread; it may write to lock-free atomics.
std::atomic<int> interrupted = 0;
std::atomic<int64_t> interrupted_at = 0;  // nanoseconds of the monotonic clock
std::atomic<const char*> acknowledgment_line = nullptr;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

/// One decision to end a run may arrive as several signals: `timeout`, wrappers and schedulers send one to the process
/// and one to its group.
constexpr int64_t kOneDecision = 2'000'000'000;  // nanoseconds

/// Calls only async-signal-safe functions.
void on_interrupt(int signal) {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = 1'000'000'000 * static_cast<int64_t>(time.tv_sec) + time.tv_nsec;
  int64_t first = 0;
  if (interrupted_at.compare_exchange_strong(first, now)) {
    interrupted = signal;
    if (verbosity() != Verbosity::quiet) write_line(acknowledgment_line.load());
  } else if (now - first >= kOneDecision) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // takes effect when the handler returns
  }
}

}  // namespace

InterruptGuard::InterruptGuard(const char* acknowledgment) {
  interrupted = 0;
  interrupted_at = 0;
  acknowledgment_line = acknowledgment;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  for (const int each : kSignals) ::sigaddset(&action.sa_mask, each);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

int InterruptGuard::signal() { return interrupted; }

}  // namespace plumb::app
