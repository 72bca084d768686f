#include "plumb/run/background_writer.h"

#include <utility>

namespace plumb {

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundWriter::submit(int64_t step, std::function<void()> job) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.empty() || step_ == step; });
    throw_failure();
    step_ = step;
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

void BackgroundWriter::check() {
  const std::lock_guard lock(mutex_);
  throw_failure();
}

void BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty(); });
  throw_failure();
}

void BackgroundWriter::throw_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    // Moved out so that the job's data are freed with it; the empty slot marks it as running.
    std::function<void()> job = std::move(jobs_.front());
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
