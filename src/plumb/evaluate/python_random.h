// Python's random numbers. lm-evaluation-harness draws few-shot examples and bootstrap samples with them, so equal
// prompts and standard errors need the same numbers; everything else in Plumb uses base/random.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace plumb {

/// `random.Random(seed)` of Python 3: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded from an array
/// of words.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  /// random(): uniform in [0, 1), 53 bits.
  double uniform();

  /// sample(range(population), count): distinct numbers below `population`. Throws Error if there are fewer than
  /// `count`.
  std::vector<size_t> sample(size_t population, size_t count);

  /// choices(range(population), k=population): numbers below `population`, with replacement.
  std::vector<size_t> choices(size_t population);

 private:
  size_t below(size_t n);

  std::mt19937 words_;
};

}  // namespace plumb
