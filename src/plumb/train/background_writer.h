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

/// A thread that does jobs in the order in which they were submitted. What a job throws is thrown by the next call
/// here; the jobs after it are dropped, since they count on it.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  /// Finishes the jobs that were submitted.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Queues a job that belongs to step `step`, after those of earlier steps have been finished: the data of one step
  /// are held at a time.
  void submit(int64_t step, std::function<void()> job);

  /// Throws what a job has thrown.
  void check();

  /// Returns when all jobs are finished.
  void wait();

 private:
  void work();
  void throw_failure();  // under the mutex

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex:
  std::deque<std::function<void()>> jobs_;  // the first one is being done
  int64_t step_ = 0;                        // of the jobs
  std::exception_ptr failure_;
  bool ending_ = false;

  std::thread thread_;  // started by the first job
};

}  // namespace plumb
