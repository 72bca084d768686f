// The state shared by the handles of a group: Gloo's connections to the other ranks. Only used in this folder.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "plumb/base/broken_pipe.h"
#include "plumb/base/error.h"
#include "plumb/base/timing.h"
#include "plumb/parallel/group.h"
#include "plumb/parallel/membership.h"
#include "plumb/parallel/register.h"

namespace plumb {

/// This process's part in a run: on rank 0, also the register. All groups of the process share it.
struct Assembly {
  std::unique_ptr<Register> keeper;  // null except on rank 0
  std::shared_ptr<Membership> membership;
  int64_t neighbors = 1;  // processes that share this one's processors, itself included
};

/// Gloo with a time-out that can change (one for connecting, another for exchanges) and connections that can be closed.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  void set_timeout(std::chrono::milliseconds timeout);
  /// Closes the connections to the other ranks. Operations in progress do not end.
  void close();
};

class Connection {
 public:
  using Options = c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>;

  /// Connects to the other ranks of the group `name` and returns when all are connected; the options give the time-out.
  /// Throws Error if another process is lost.
  Connection(std::shared_ptr<Assembly> assembly, std::string name, int64_t rank, int64_t size, Options options);
  /// Waits a short time for the others to leave too: closing a connection may lose data in transit.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const ExchangeCost& cost() const { return cost_; }
  [[nodiscard]] const Assembly& assembly() const { return *assembly_; }

  /// Runs the operation returned by `start(gloo)` to completion; `single`: it sends to or receives from one rank.
  /// Throws Error if another rank is lost.
  template <typename Start>
  void exchange(int64_t bytes, const Start& start, bool single = false) {
    const Stopwatch watch;
    begin(single);
    const BrokenPipeGuard guard;
    try {
      finish(start(*gloo_), single);
    } catch (const std::exception& error) {
      throw lost(error);
    }
    end(bytes, watch.seconds());
  }

  // See Group.
  void leave();
  void require_same(const Facts& facts);

  /// Throws Error if it is known that a rank has left the group.
  void require_present(int64_t rank);

  /// A connection among some of the ranks, which all pass the same name. Each has a new rank.
  std::shared_ptr<Connection> among(const std::string& name, int64_t rank, int64_t size);

  /// The number of earlier splits of the group.
  int64_t next_split() { return splits_++; }

 private:
  using Work = decltype(std::declval<Gloo>().barrier());

  void begin(bool single);
  void end(int64_t bytes, double seconds);
  /// Waits for an operation. Throws Error if a process is lost meanwhile.
  void finish(const Work& work, bool single);
  Error lost(const std::exception& error);

  std::shared_ptr<Assembly> assembly_;
  std::string name_;
  int64_t rank_, size_;
  std::chrono::milliseconds time_out_;  // of connecting
  c10::intrusive_ptr<Gloo> gloo_;
  ExchangeCost cost_;
  int64_t exchanges_ = 0;
  int64_t splits_ = 0;
  int64_t comparisons_ = 0;
  bool failed_ = false;
  bool left_ = false;
};

}  // namespace plumb
