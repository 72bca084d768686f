// Writes files while training continues.
#pragma once

#include <cstdint>
#include <functional>

#include "plumb/base/job_queue.h"

namespace plumb {

/// Jobs that write the data of a step.
class BackgroundWriter {
 public:
  /// Queues a job of step `step`. Waits for the jobs of other steps first, so that the data of only one step are held
  /// at a time. Rethrows the exception of a failed job.
  void submit(int64_t step, std::function<void()> job) {
    if (step != step_) queue_.wait();
    queue_.check();
    step_ = step;
    queue_.add(std::move(job));
  }

  /// Rethrows the exception of a failed job.
  void check() { queue_.check(); }

  /// Waits until all jobs are finished.
  void wait() { queue_.wait(); }

 private:
  int64_t step_ = 0;  // of the queued jobs
  JobQueue queue_;
};

}  // namespace plumb
