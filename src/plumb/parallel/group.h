// The processes that compute together, and what they exchange. Gloo (LibTorch's c10d) carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// What a group has exchanged so far, as this rank saw it.
struct ExchangeCost {
  double seconds = 0;  // including the wait for other ranks
  int64_t bytes = 0;   // of the tensors that this rank gave or, where it gave none, took
  int64_t calls = 0;
};

class Connection;

/// Processes, numbered by rank, that compute together. A group is a handle that is cheap to copy: copies share one
/// connection, which lasts as long as any of them.
///
/// A default-constructed group is one process alone. Its collectives communicate with nobody and give back what they
/// were given, so code for one process and for many is the same.
///
/// Every rank calls the same collectives in the same order, with tensors of the same shape and type, on any device and
/// of any layout in memory. Tensors that are written are written in place, outside of any graph. Everything that
/// exchanges throws Error if another rank is lost, and the group cannot be used from then on.
class Group {
 public:
  Group() = default;
  explicit Group(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  [[nodiscard]] int64_t rank() const;
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] ExchangeCost cost() const;

  /// x becomes its sum over the ranks, bit for bit the same in each. Half-precision types are summed in float32.
  void sum(const Tensor& x) const;

  /// The sums over the ranks of tensors of one type, in one exchange; of a group of one the tensors themselves.
  [[nodiscard]] std::vector<Tensor> sum_coalesced(const std::vector<Tensor>& tensors) const;

  /// The sums over the ranks of a few numbers.
  [[nodiscard]] std::vector<double> sums(const std::vector<double>& values) const;

  /// Whether a condition holds in any rank.
  [[nodiscard]] bool any(bool condition) const;

  /// The sum as a differentiable function, of any order. Where the loss is the sum of the ranks' losses, the derivative
  /// with respect to one rank's x is the sum of all ranks' derivatives: the same operation. Every rank has to run the
  /// backward pass.
  [[nodiscard]] Tensor summed(const Tensor& x) const;

  /// x becomes what it is in rank `root`.
  void broadcast(const Tensor& x, int64_t root = 0) const;
  [[nodiscard]] std::string broadcast(const std::string& text, int64_t root = 0) const;

  /// x of every rank, in the order of ranks: in rank `root`, and nothing in the others; or in all of them.
  [[nodiscard]] std::vector<Tensor> gather(const Tensor& x, int64_t root = 0) const;
  [[nodiscard]] std::vector<Tensor> all_gather(const Tensor& x) const;

  /// x becomes parts[rank()] of rank `root`; other ranks pass no parts.
  void scatter(const std::vector<Tensor>& parts, const Tensor& x, int64_t root = 0) const;

  /// From one rank to another, which calls `receive` and gives a tensor of the same shape and type. `send` returns when
  /// the values are on their way; it may wait for the other to call `receive`. Messages between two ranks arrive in the
  /// order in which they were sent.
  void send(const Tensor& x, int64_t to) const;
  void receive(const Tensor& x, int64_t from) const;

  /// Returns when every rank has called it.
  void barrier() const;

  /// The ranks of the same color, in the same order, as a group of their own. Every rank of this group calls it.
  [[nodiscard]] Group split(int64_t color) const;

 private:
  void require_rank(int64_t rank) const;
  void require_other(int64_t rank) const;

  std::shared_ptr<Connection> connection_;  // null: one process alone
};

}  // namespace plumb
