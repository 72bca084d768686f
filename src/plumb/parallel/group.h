// Process groups and their communication, based on Gloo (LibTorch's c10d).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// What a group has exchanged so far, as seen by this rank.
struct ExchangeCost {
  double seconds = 0;  // including waiting for other ranks
  int64_t bytes = 0;   // of the tensors that this rank sent or, if it sent none, received
  int64_t calls = 0;

  ExchangeCost& operator+=(const ExchangeCost& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    calls += other.calls;
    return *this;
  }
};

class Connection;

/// What must be equal in all processes of a run: names and values.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Processes that compute together, numbered by rank. A group is a handle that is cheap to copy: copies share one
/// connection, which lives as long as any of them.
///
/// A default-constructed group is a single process. Its collectives communicate with no one and return their input, so
/// the same code serves one process and many.
///
/// All ranks must call the same collectives in the same order, with tensors of the same shape and type, on any device
/// and with any memory layout. Output tensors are written in place, outside any graph. All communication throws Error
/// if another rank is lost, and the group cannot be used after that; data in transit may still arrive, so tensors must
/// own their memory (one made by at::from_blob without a deleter does not).
class Group {
 public:
  Group() = default;
  explicit Group(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  [[nodiscard]] int64_t rank() const;
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] ExchangeCost cost() const;

  /// The number of processes of the run, including this one, that may use the same processors as this one.
  [[nodiscard]] int64_t neighbors() const;

  /// Tells the others that this rank exchanges nothing more. The destructor of the last handle does so too, but then
  /// waits a short time for the others to do the same.
  void leave() const;

  /// Tells the other processes of the run that this one is about to end, and why. All further exchanges then throw
  /// Error with this reason.
  void fail(const std::string& reason) const;

  /// Replaces x by its sum over the ranks, bit for bit the same in each. Half-precision types are summed in float32.
  void sum(const Tensor& x) const;

  /// The sums over the ranks of tensors of one type, in a single exchange; in a group of one, the tensors themselves.
  [[nodiscard]] std::vector<Tensor> sum_coalesced(const std::vector<Tensor>& tensors) const;

  /// The sums over the ranks of a few numbers.
  [[nodiscard]] std::vector<double> sums(const std::vector<double>& values) const;

  /// Whether a condition holds on any rank.
  [[nodiscard]] bool any(bool condition) const;

  /// The sum as a function that is differentiable to any order. If the loss is the sum of the ranks' losses, the
  /// derivative with respect to one rank's x is the sum of all ranks' derivatives: the same operation. Every rank must
  /// run the backward pass.
  [[nodiscard]] Tensor all_reduce(const Tensor& x) const;

  /// The two ends of a region of a computation that the ranks divide among themselves, all of them on the way to one
  /// loss that each computes; differentiable to any order, each the adjoint of the other. `copy_to_region` is where it
  /// begins: x, the same in all ranks, with the sum of the ranks' derivatives as its derivative. `reduce_from_region`
  /// is where it ends: the sum of the ranks' x, whose derivative is that of each x. Every rank must run the backward
  /// pass.
  [[nodiscard]] Tensor copy_to_region(const Tensor& x) const;
  [[nodiscard]] Tensor reduce_from_region(const Tensor& x) const;

  /// Replaces x by that of rank `root`.
  void broadcast(const Tensor& x, int64_t root = 0) const;
  [[nodiscard]] std::string broadcast(const std::string& text, int64_t root = 0) const;

  /// x of all ranks, in rank order: `gather` returns it on rank `root` and nothing on the others, `all_gather` on all.
  [[nodiscard]] std::vector<Tensor> gather(const Tensor& x, int64_t root = 0) const;
  [[nodiscard]] std::vector<Tensor> all_gather(const Tensor& x) const;

  /// Divides x, one-dimensional, into one equal piece per rank and sends piece r to rank r; returns the received pieces
  /// in rank order. Throws Error if x cannot be divided equally.
  [[nodiscard]] Tensor all_to_all(const Tensor& x) const;

  /// Replaces x by parts[rank()] of rank `root`; other ranks pass no parts.
  void scatter(const std::vector<Tensor>& parts, const Tensor& x, int64_t root = 0) const;

  /// Point-to-point communication: `receive` needs a tensor of the same shape and type. `send` returns when the values
  /// are in transit, and may wait for the other rank to call `receive`. Messages between two ranks arrive in the order
  /// in which they were sent.
  void send(const Tensor& x, int64_t to) const;
  void receive(const Tensor& x, int64_t from) const;

  /// Returns when every rank has called it.
  void barrier() const;

  /// Throws Error on all ranks, naming the first fact that differs and where, unless all ranks pass the same facts.
  void require_same(const Facts& facts) const;

  /// The ranks with the same color, in the same order, as a separate group. Every rank of this group must call it.
  [[nodiscard]] Group split(int64_t color) const;

 private:
  void require_rank(int64_t rank) const;
  void require_other(int64_t rank) const;

  std::shared_ptr<Connection> connection_;  // null for a single process
};

/// Runs `work` and returns its result. If it throws, the other processes, which would wait for this one, are told the
/// error.
template <typename Work>
auto telling_others(const Group& group, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    group.fail(error.what());
    throw;
  }
}

}  // namespace plumb
