#include "plumb/base/job_queue.h"

#include <utility>

namespace plumb {

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobQueue::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

void JobQueue::wait(size_t longest) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.size() <= longest; });
  rethrow();
}

void JobQueue::check() {
  const std::lock_guard lock(mutex_);
  rethrow();
}

void JobQueue::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void JobQueue::work() {
  if (begin_) begin_();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    // Moved out so that the job's data are freed with it; the empty slot marks it as running.
    Job job = std::move(jobs_.front());
    std::exception_ptr failure;
    lock.unlock();
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    job = nullptr;
    lock.lock();
    jobs_.pop_front();
    if (failure) {
      failure_ = failure;
      jobs_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace plumb
