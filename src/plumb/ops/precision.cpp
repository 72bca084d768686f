#include "plumb/ops/precision.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/kernels/elementwise.h"

namespace plumb::ops {
namespace {

thread_local MatrixPrecision* current = nullptr;

}  // namespace

Precision precision_of(const std::string& name) {
  if (name == "float32") return Precision::float32;
  if (name == "bf16") return Precision::bfloat16;
  throw Error(fmt::format("unknown precision '{}'", name), "known: float32, bf16");
}

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

Tensor MatrixPrecision::rounded(const Tensor& weight) {
  if (!weights_stay_) return to_bfloat16(weight);
  const std::lock_guard<std::mutex> lock(mutex_);
  Tensor& found = rounded_[weight.data_ptr()];
  if (!found.defined() || found.sizes() != weight.sizes()) found = to_bfloat16(weight);
  return found;
}

PrecisionGuard::PrecisionGuard(MatrixPrecision& precision) : before_(current) { current = &precision; }
PrecisionGuard::~PrecisionGuard() { current = before_; }

MatrixPrecision* rounding_of(const Tensor& x) {
  const bool rounds =
      current != nullptr && current->precision() == Precision::bfloat16 && x.scalar_type() == at::kFloat;
  return rounds ? current : nullptr;
}

}  // namespace plumb::ops
