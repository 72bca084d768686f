// The largest values of a row of logits, without sorting it, and the logarithm of its softmax's denominator.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// Finds the k largest of x[0, n), largest first; ties are ordered by index. Writes values and indices (k each) and
/// returns their number, which is less than k if fewer than k values are above −∞. If there is a NaN, the first NaN is
/// the only result.
int64_t top_values(const float* x, int64_t n, int64_t k, float* values, int32_t* indices);
int64_t top_values(const double* x, int64_t n, int64_t k, double* values, int32_t* indices);

/// log Σ exp(x) over x[0, n); `shift` should be close to their maximum, so that nothing overflows.
float log_partition(const float* x, int64_t n, float shift);
double log_partition(const double* x, int64_t n, double shift);

}  // namespace plumb::kernels
