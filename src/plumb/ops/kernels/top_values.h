// The largest of a row of logits, without sorting it, and the logarithm of its softmax's denominator.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// Finds the k largest of x[0, n), largest first; of equal ones that of the lower index comes first. Writes values and
/// indices (k each) and returns how many there are: fewer than k if n < k or some are −∞. Where there is a NaN, the
/// first is all that is found: the others have no order.
int64_t top_values(const float* x, int64_t n, int64_t k, float* values, int32_t* indices);
int64_t top_values(const double* x, int64_t n, int64_t k, double* values, int32_t* indices);

/// log Σ exp(x) over x[0, n); `shift` is approximately their maximum, so that nothing overflows.
float log_partition(const float* x, int64_t n, float shift);
double log_partition(const double* x, int64_t n, double shift);

}  // namespace plumb::kernels
