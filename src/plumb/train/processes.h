// The processes that train one model together, each on its share of every batch. Gloo (LibTorch's c10d) carries sums
// between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plumb/ops/torch.h"

namespace plumb {

/// Where the processes of a run meet.
struct Rendezvous {
  int64_t rank = 0;
  int64_t size = 1;
  std::string host = "127.0.0.1";  // of process 0
  int64_t port = 0;                // on which it listens; 0, for process 0 alone: one that is free
};

/// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and launchers like it set them; none if WORLD_SIZE
/// is not set. Throws Error on values that make none.
std::optional<Rendezvous> rendezvous_of_environment();

/// What process 0 does while the others come.
struct Reception {
  /// Told the port once it listens.
  std::function<void(int64_t port)> listening;
  /// Called again and again until all have come; may throw.
  std::function<void()> waiting;
};

/// What has been exchanged so far, as this process saw it.
struct ExchangeCost {
  double seconds = 0;  // waiting for the other processes included
  int64_t bytes = 0;   // of the tensors summed
  int64_t calls = 0;
};

/// Every member that exchanges is called by all processes in the same order. Throws Error when another process is lost.
class ProcessGroup {
 public:
  /// Returns when all processes have come. Throws Error if they have not within five minutes.
  explicit ProcessGroup(const Rendezvous& rendezvous, const Reception& reception = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const ExchangeCost& cost() const { return cost_; }

  /// x, contiguous, becomes its sum over all processes, bit for bit the same in each.
  void sum(Tensor x);

  /// The sum as a differentiable function. Where the loss is the sum of the processes' losses, the derivative with
  /// respect to one process's x is the sum of all the derivatives: the same operation.
  Tensor summed(const Tensor& x);

  /// x, contiguous, becomes what it is in process 0.
  void take_from_first(Tensor x);
  [[nodiscard]] std::string take_from_first(const std::string& text);

 private:
  struct Connection;
  int64_t rank_;
  int64_t size_;
  ExchangeCost cost_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace plumb
