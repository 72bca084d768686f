// Dropout with a mask that is a function of (seed, stream, position), recomputed when needed and never stored.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// The element at position i is kept if its 16 bits of philox(seed, stream, i / 8) are below `keep_below` (0 to 65536).
struct DropoutMask {
  uint64_t seed;
  uint64_t stream;
  uint32_t keep_below;
  int64_t first;  // the position of element 0
};

template <typename T>
struct DropoutKernels {
  /// out[i] = (residual ? residual[i] : 0) + (kept ? scale·x[i] : 0) for i in [begin, end). first + begin must be ≥ 0;
  /// fastest if it is a multiple of 8.
  void (*add)(const DropoutMask& mask, T scale, const T* residual, const T* x, T* out, int64_t begin, int64_t end);
};

/// Those of the instructions in use.
template <typename T>
const DropoutKernels<T>& dropout();

}  // namespace plumb::kernels
