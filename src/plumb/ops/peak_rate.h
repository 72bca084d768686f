// The rate of matrix products that a process reaches at best here: the ceiling of what training can reach.
#pragma once

#include "plumb/ops/precision.h"

namespace plumb::ops {

/// Floating-point operations per second of square matrix products in this precision (float32 or bfloat16), with this
/// process's threads on the default device: the best of a few products of growing size, which take about 0.1 s
/// together. A product of (m, k) and (k, n) counts 2mnk operations. Other load on the machine lowers it.
double peak_product_rate(Precision precision);

}  // namespace plumb::ops
