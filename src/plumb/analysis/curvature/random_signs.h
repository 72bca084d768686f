// The elements of a random start vector of Lanczos, over plain memory.
#pragma once

#include <cmath>
#include <cstdint>

#include "plumb/base/random.h"

namespace plumb {

/// Independent elements ±1/√n of a vector (n), one piece after another: a function of (seed, index) only.
class RandomSigns {
 public:
  RandomSigns(int64_t n, uint64_t seed, int64_t index)
      : random_(seed, stream_of("curvature") + static_cast<uint64_t>(index)),
        size_(1 / std::sqrt(static_cast<double>(n))) {}

  /// Writes the next `count` of them.
  template <typename T>
  void write(T* out, int64_t count) {
    const T size = static_cast<T>(size_);
    for (int64_t i = 0; i < count; ++i, bits_ >>= 1) {
      if (drawn_++ % 32 == 0) bits_ = random_.next();
      out[i] = (bits_ & 1) != 0 ? size : -size;
    }
  }

 private:
  Random random_;
  double size_;  // of each
  int64_t drawn_ = 0;
  uint32_t bits_ = 0;  // the signs of the next 32 − drawn_ % 32
};

}  // namespace plumb
