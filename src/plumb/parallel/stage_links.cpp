#include "plumb/parallel/stage_links.h"

#include <omp.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace plumb {
namespace {

/// The group of each neighbor: ranks 0 and 1, 2 and 3, …, then 1 and 2, …, then the last and the first.
struct Neighbors {
  Group previous, next;
};

Neighbors neighbors_in(const Group& stages, bool ring) {
  const int64_t rank = stages.rank(), size = stages.size();
  Neighbors found;
  for (const int64_t odd : {0, 1}) {
    const Group pair = stages.split((rank + odd) / 2);
    if (pair.size() == 1) continue;
    (pair.rank() == 0 ? found.next : found.previous) = pair;
  }
  if (ring && size > 1) {
    const bool end = rank == 0 || rank == size - 1;
    const Group pair = stages.split(end ? 0 : rank);
    if (rank == 0) found.previous = pair;
    if (rank == size - 1) found.next = pair;
  }
  return found;
}

}  // namespace

/// Sends messages in the order in which they are added.
class StageLinks::Line {
 public:
  explicit Line(Group to) : to_(std::move(to)), thread_([this] { work(); }) {}
  ~Line() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void add(const Tensor& x) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(x);
    }
    changed_.notify_all();
  }

  void wait(size_t longest) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() <= longest || error_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    omp_set_num_threads(1);  // for this thread only
    const at::NoGradGuard no_graph;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Tensor x = waiting_.front();
      const bool failed = error_ != nullptr;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        if (!failed) to_.send(x, 1 - to_.rank());
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown) error_ = thrown;
      waiting_.pop_front();
      changed_.notify_all();
    }
  }

  Group to_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tensor> waiting_;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

StageLinks::StageLinks(const Group& stages, bool ring) {
  for (const Pass direction : {Pass::forward, Pass::backward}) {
    const Neighbors found = neighbors_in(stages, ring);
    const bool forward = direction == Pass::forward;
    Direction& own = of(direction);
    own.from = forward ? found.previous : found.next;
    own.to = forward ? found.next : found.previous;
    if (own.to.size() > 1) own.line = std::make_unique<Line>(own.to);
  }
}

StageLinks::~StageLinks() = default;

void StageLinks::send(const Tensor& x, Pass direction) { of(direction).line->add(x); }

void StageLinks::receive(const Tensor& x, Pass direction) {
  const Group& from = of(direction).from;
  from.receive(x, 1 - from.rank());
}

void StageLinks::wait_for_lines(size_t longest) {
  for (const Direction& each : directions_) {
    if (each.line) each.line->wait(longest);
  }
}

ExchangeCost StageLinks::cost() const {
  ExchangeCost all;
  for (const Direction& each : directions_) {
    const ExchangeCost received = each.from.cost(), sent = each.to.cost();
    all.seconds += received.seconds;
    all.bytes += received.bytes + sent.bytes;
    all.calls += received.calls + sent.calls;
  }
  return all;
}

}  // namespace plumb
