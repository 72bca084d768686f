// Conversion to 8-bit integers and back, for products in int8.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// out[i] = x[i] / s rounded to nearest, with s = max |x| / 127 over x[0, n), so that |out| ≤ 127; returns s. If any x
/// is not finite, neither is s.
float quantize(const float* x, int64_t n, int8_t* out);

/// y[c] = row_scale · column_scales[c] · sums[c] + bias[c], then max(·, 0) if `relu`, for c in [0, n); NaN stays NaN.
/// `bias` may be null.
void dequantize(const int32_t* sums, float row_scale, const float* column_scales, const float* bias, bool relu,
                int64_t n, float* y);

}  // namespace plumb::kernels
