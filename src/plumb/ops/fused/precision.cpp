#include "plumb/base/parallel.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/elementwise.h"

namespace plumb::ops::fused {

Tensor to_bfloat16(const Tensor& x_in) {
  const Tensor x = as_contiguous(x_in, "rounding");
  Tensor rounded = at::empty(x.sizes(), x.options().dtype(at::kBFloat16));
  const float* in = x.data_ptr<float>();
  auto* out = reinterpret_cast<kernels::Bfloat16*>(rounded.data_ptr());
  parallel_ranges(x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
    kernels::round_to_bfloat16(in + begin, end - begin, out + begin);
  });
  return rounded;
}

}  // namespace plumb::ops::fused
