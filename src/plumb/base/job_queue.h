// A thread beside the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace plumb {

/// Runs jobs in the order in which they are added. Once one has thrown, the others are dropped, since they may depend
/// on it, until the exception has been rethrown.
class JobQueue {
 public:
  using Job = std::function<void()>;

  /// `begin` is called first in the thread, which starts with the first job.
  explicit JobQueue(Job begin = {}) : begin_(std::move(begin)) {}
  /// Finishes the jobs.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  void add(Job job);

  /// Waits until at most `longest` jobs are left, with the one that runs. Rethrows the exception of a job.
  void wait(size_t longest = 0);

  /// Rethrows the exception of a job.
  void check();

 private:
  void work();
  void rethrow();  // the caller holds the mutex

  const Job begin_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex:
  std::deque<Job> jobs_;  // the first one is running
  std::exception_ptr failure_;
  bool ending_ = false;

  std::thread thread_;
};

}  // namespace plumb
