// The peak rate of matrix products of this machine: the upper bound for training.
#pragma once

#include "plumb/ops/precision.h"

namespace plumb::ops {

/// Floating-point operations per second of square matrix products in this precision (float32 or bfloat16), with this
/// process's threads on the default device: the best of a few products of increasing size, which take about 0.1 s in
/// total. A product of (m, k) and (k, n) counts as 2mnk operations. Other load on the machine lowers the result.
double peak_product_rate(Precision precision);

}  // namespace plumb::ops
