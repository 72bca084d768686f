// A random permutation that need not fit in memory.
#pragma once

#include <cstdint>

#include "plumb/base/random.h"

namespace plumb {

/// A permutation of 0, …, n − 1, determined by n, seed and stream; elements are computed on demand by a Feistel network
/// (Luby & Rackoff, SIAM J. Comput. 1988) of six rounds on the numbers below a power of 4, repeated until the result is
/// below n (cycle walking: Black & Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  /// 0 < n ≤ 2⁶².
  Permutation(int64_t n, uint64_t seed, uint64_t stream) : n_(static_cast<uint64_t>(n)), seed_(seed), stream_(stream) {
    while (half_bits_ < 31 && uint64_t{1} << (2 * half_bits_) < n_) ++half_bits_;
  }

  /// The element at index i, 0 ≤ i < n.
  [[nodiscard]] int64_t operator()(int64_t i) const {
    auto x = static_cast<uint64_t>(i);
    do {
      x = scrambled(x);
    } while (x >= n_);
    return static_cast<int64_t>(x);
  }

 private:
  [[nodiscard]] uint64_t scrambled(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_, right = x & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t mixed = left ^ (philox(seed_, stream_, round << 32 | right)[0] & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  uint64_t n_, seed_, stream_;
  int half_bits_ = 1;
};

}  // namespace plumb
