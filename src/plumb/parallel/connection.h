// The state shared by the handles of a group: the connections to the other ranks. Only used in this folder.
#pragma once

#include <memory>
#include <string>

#include "plumb/base/broken_pipe.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/parallel/gloo.h"
#include "plumb/parallel/group.h"
#include "plumb/parallel/membership.h"

namespace plumb {

class Connection {
 public:
  /// Connects to the other ranks of the group `name` and returns when all are connected. Throws Error if another
  /// process is lost.
  Connection(std::shared_ptr<Membership> membership, std::string name, int64_t rank, int64_t size, MakeBackend make);
  /// Waits a short time for the others to leave too: closing a connection may lose data in transit.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const ExchangeCost& cost() const { return cost_; }
  /// This process's part in the run, which all of its groups share.
  [[nodiscard]] Membership& membership() const { return *membership_; }

  /// Runs the operation returned by `start(backend)` to completion; `single`: it sends to or receives from one rank.
  /// Throws Error if another rank is lost.
  template <typename Start>
  void exchange(int64_t bytes, const Start& start, bool single = false) {
    if (failed_) throw Error("lost another process of this run", "rerun to resume");
    const Stopwatch watch;
    const BrokenPipeGuard guard;
    try {
      finish(start(*backend_), single);
    } catch (const std::exception& error) {
      throw lost(error);
    }
    cost_ = {cost_.seconds + watch.seconds(), cost_.bytes + bytes, cost_.calls + 1};
  }

  void leave();  // see Group

  /// A connection among some of the ranks, which all pass the same name. Each has a new rank.
  std::shared_ptr<Connection> among(const std::string& name, int64_t rank, int64_t size);

  /// The number of earlier splits of the group.
  int64_t next_split() { return splits_++; }

 private:
  using Work = decltype(std::declval<Backend>().barrier());

  /// Waits for an operation. Throws Error if a process is lost meanwhile.
  void finish(const Work& work, bool single);
  /// The same for something that another thread does, since Gloo would keep waiting for a lost process.
  void in_thread(const std::function<void()>& work);
  Error lost(const std::exception& error);

  std::shared_ptr<Membership> membership_;
  std::string name_;
  int64_t rank_, size_;
  MakeBackend make_;
  c10::intrusive_ptr<Backend> backend_;
  ExchangeCost cost_;
  int64_t splits_ = 0;
  bool failed_ = false;
  bool left_ = false;
};

}  // namespace plumb
