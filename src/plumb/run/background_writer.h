// Writes files while training continues.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace plumb {

/// A thread that runs jobs in the order they were submitted. An exception from a job is rethrown by the next call to
/// submit, check or wait; the jobs queued after the failed one are dropped, because they depend on it.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  /// Finishes the submitted jobs.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Queues a job of step `step`. Waits for the jobs of other steps first, so that the data of only one step are held
  /// at a time.
  void submit(int64_t step, std::function<void()> job);

  /// Rethrows the exception of a failed job.
  void check();

  /// Waits until all jobs are finished.
  void wait();

 private:
  void work();
  void throw_failure();  // the caller holds the mutex

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex:
  std::deque<std::function<void()>> jobs_;  // the first one is running
  int64_t step_ = 0;                        // of the queued jobs
  std::exception_ptr failure_;
  bool ending_ = false;

  std::thread thread_;  // started with the first job
};

}  // namespace plumb
