// The largest values of a row of logits, without sorting it, and the logarithm of its softmax's denominator.
#pragma once

#include <cstdint>

namespace plumb::kernels {

template <typename T>
struct TopValueKernels {
  /// Finds the k largest of x[0, n), largest first; ties are ordered by index. Writes values and indices (k each) and
  /// returns their number, which is less than k if fewer than k values are above −∞. If there is a NaN, the first NaN
  /// is the only result.
  int64_t (*find)(const T* x, int64_t n, int64_t k, T* values, int32_t* indices);
  /// log Σ exp(x) over x[0, n); `shift` should be close to their maximum, so that nothing overflows.
  T (*log_partition)(const T* x, int64_t n, T shift);
};

/// Those of the instructions in use.
template <typename T>
const TopValueKernels<T>& top_values();

}  // namespace plumb::kernels
