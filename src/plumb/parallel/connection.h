// What the handles of one group share: Gloo's connections to the other ranks. Only used in this folder.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <memory>
#include <string>

#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/parallel/broken_pipe.h"
#include "plumb/parallel/group.h"

namespace plumb {

class Connection {
 public:
  using Options = c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>;

  /// Connects to the other ranks, which are found through `store`, and returns when all are connected. The caller, who
  /// also makes the options, must hold a BrokenPipeGuard: both start threads.
  Connection(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, Options options)
      : store_(std::move(store)),
        gloo_(c10::make_intrusive<c10d::ProcessGroupGloo>(store_, static_cast<int>(rank), static_cast<int>(size),
                                                          std::move(options))) {
    gloo_->barrier()->wait();  // a connected rank might leave while others are still connecting
  }

  [[nodiscard]] int64_t rank() const { return gloo_->getRank(); }
  [[nodiscard]] int64_t size() const { return gloo_->getSize(); }
  [[nodiscard]] const ExchangeCost& cost() const { return cost_; }

  /// Runs the operation returned by `start(gloo)` to completion. Throws Error if another rank is lost.
  template <typename Start>
  void exchange(int64_t bytes, const Start& start) {
    const Stopwatch watch;
    const BrokenPipeGuard guard;
    try {
      start(*gloo_)->wait();
    } catch (const std::exception& error) {
      throw lost(error);
    }
    cost_.seconds += watch.seconds();
    cost_.bytes += bytes;
    ++cost_.calls;
  }

  /// A connection among some of the ranks, all of which pass the same name. Each has a new rank.
  std::shared_ptr<Connection> among(const std::string& name, int64_t rank, int64_t size);

  /// The number of earlier splits of the group.
  int64_t next_split() { return splits_++; }

 private:
  static Error lost(const std::exception& error);

  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  ExchangeCost cost_;
  int64_t splits_ = 0;
};

}  // namespace plumb
