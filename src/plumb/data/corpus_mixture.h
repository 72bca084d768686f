// Several corpora in one epoch, in proportions that differ from their sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plumb {

/// A corpus that is drawn from.
struct WeightedCorpus {
  std::string name;
  int64_t size = 0;  // examples
  double weight = 1;
};

/// The probability of each corpus, p_c = w_c · n_c^(1/T) / Σ_k w_k · n_k^(1/T), with n the size, w the weight and T the
/// temperature (Arivazhagan et al. 2019, arXiv 1907.05019, section 3.4; mT5's α is 1/T, Xue et al. 2021, arXiv
/// 2010.11934): T = 1 is in proportion to size, and T → ∞ to the weights alone. Throws Error on a size, a weight or a
/// temperature that is not above 0, or not finite.
std::vector<double> corpus_probabilities(std::span<const WeightedCorpus> corpora, double temperature);

/// Which examples form an epoch. An epoch has as many draws as there are examples, N; each corpus has the same share of
/// them in every epoch, p_c · N, rounded so that they add up to N (the largest remainders are rounded up). The draws
/// from a corpus go through it in a random order, over and over, each time in another one, and each epoch continues
/// where the one before has ended: none of its examples is drawn a second time before all have been drawn once. Every
/// draw is a function of the arguments and its number. Immutable, and safe to use from several threads.
class CorpusMixture {
 public:
  /// The examples of the corpora are numbered one corpus after another. Throws Error as corpus_probabilities does, if
  /// there is no corpus, and if the share of one is less than one example.
  CorpusMixture(std::vector<WeightedCorpus> corpora, double temperature, uint64_t seed);

  /// The draws of an epoch.
  [[nodiscard]] int64_t size() const { return size_; }

  [[nodiscard]] const std::vector<WeightedCorpus>& corpora() const { return corpora_; }
  /// The draws of an epoch from each corpus.
  [[nodiscard]] const std::vector<int64_t>& shares() const { return shares_; }

  /// Whether every epoch has every example once.
  [[nodiscard]] bool every_example_once() const;

  /// The example that a draw yields; epoch ≥ 0, 0 ≤ draw < size(). The draws from the first corpus come first.
  [[nodiscard]] int64_t example(int64_t epoch, int64_t draw) const;

 private:
  std::vector<WeightedCorpus> corpora_;
  std::vector<int64_t> shares_;
  std::vector<uint64_t> seeds_;  // of the orders of each corpus
  int64_t size_ = 0;
};

}  // namespace plumb
