// Several corpora in one epoch, in proportions other than their sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plumb {

/// A corpus to draw from.
struct WeightedCorpus {
  std::string name;
  int64_t size = 0;  // examples
  double weight = 1;
};

/// The probability of each corpus, p_c = w_c · n_c^(1/T) / Σ_k w_k · n_k^(1/T), with n the size, w the weight and T the
/// temperature (Arivazhagan et al. 2019, arXiv 1907.05019, section 3.4; mT5's α is 1/T, Xue et al. 2021, arXiv
/// 2010.11934): T = 1 is proportional to w · n, and T → ∞ to the weights alone. Throws Error unless every size, weight
/// and the temperature are positive and finite.
std::vector<double> corpus_probabilities(std::span<const WeightedCorpus> corpora, double temperature);

/// Which examples form an epoch. An epoch has as many draws as there are examples, N; each corpus has the same share in
/// every epoch, p_c · N, rounded so that the shares add up to N (largest remainders are rounded up). The draws from a
/// corpus are passes over it, each in a different random order, and each epoch continues where the previous one ended:
/// no example is drawn again before all others of its corpus have been drawn as often. Every draw is a function of the
/// arguments and its number. Immutable and thread-safe.
class CorpusMixture {
 public:
  /// Examples are numbered one corpus after another. Throws Error as corpus_probabilities does, if there is no corpus,
  /// or if a corpus's share is rounded to 0 examples.
  CorpusMixture(std::vector<WeightedCorpus> corpora, double temperature, uint64_t seed);

  /// The number of draws per epoch.
  [[nodiscard]] int64_t size() const { return size_; }

  [[nodiscard]] const std::vector<WeightedCorpus>& corpora() const { return corpora_; }
  /// The number of draws per epoch from each corpus.
  [[nodiscard]] const std::vector<int64_t>& shares() const { return shares_; }

  /// Whether every epoch contains every example exactly once.
  [[nodiscard]] bool every_example_once() const;

  /// The example of a draw; epoch ≥ 0, 0 ≤ draw < size(). The draws from the first corpus come first.
  [[nodiscard]] int64_t example(int64_t epoch, int64_t draw) const;

 private:
  std::vector<WeightedCorpus> corpora_;
  std::vector<int64_t> shares_;
  std::vector<uint64_t> seeds_;  // for the orders, per corpus
  int64_t size_ = 0;
};

}  // namespace plumb
