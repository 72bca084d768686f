// Which examples form a batch. A plan is a list of batches, each a list of example indices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace plumb {

/// The size of an example in a batch: tokens per side, including special tokens.
struct ExampleCost {
  int64_t source = 0, target = 0;
  [[nodiscard]] int64_t larger() const { return std::max(source, target); }
};

/// The sizes of all examples of a corpus, looked up on demand.
class ExampleCosts {
 public:
  /// Refers to `costs`, which must outlive it.
  ExampleCosts(std::span<const ExampleCost> costs)  // NOLINT: a list is what it stands for
      : ExampleCosts(std::ssize(costs), [costs](int64_t i) { return costs[static_cast<size_t>(i)]; }) {}
  ExampleCosts(const std::vector<ExampleCost>& costs)  // NOLINT
      : ExampleCosts(std::span<const ExampleCost>(costs)) {}
  /// `cost` is called with 0, …, `size` − 1, possibly from several threads at once.
  ExampleCosts(int64_t size, std::function<ExampleCost(int64_t)> cost) : size_(size), cost_(std::move(cost)) {}

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] ExampleCost operator[](int64_t i) const { return cost_(i); }

 private:
  int64_t size_;
  std::function<ExampleCost(int64_t)> cost_;
};

/// Throws Error if an example does not fit into a batch of `tokens` tokens.
void require_fits(int64_t example, const ExampleCost& cost, int64_t tokens);

/// One epoch of training: every example once, in batches of at most `tokens` tokens (the larger of the sums over the
/// two sides), with examples of similar length together and the batches in random order. A function of its arguments
/// only. Throws Error if a single example is larger than `tokens`.
std::vector<std::vector<int64_t>> plan_batches(std::span<const ExampleCost> costs, int64_t tokens, uint64_t seed,
                                               int64_t epoch);

/// Divides a batch into as few consecutive parts of at most `tokens` tokens (0: no limit) as possible, with the largest
/// part as small as possible; an example larger than `tokens` forms its own part. An empty batch gives one empty part.
std::vector<std::vector<int64_t>> divide_batch(std::span<const ExampleCost> costs, const std::vector<int64_t>& examples,
                                               int64_t tokens);

/// For evaluation: every example once, shortest first; an example larger than `tokens` forms its own batch.
std::vector<std::vector<int64_t>> plan_evaluation_batches(std::span<const ExampleCost> costs, int64_t tokens);

}  // namespace plumb
