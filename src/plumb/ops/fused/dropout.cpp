#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/kernels/dropout.h"

namespace plumb::ops::fused {
namespace {

Tensor masked(const Tensor& residual_in, const Tensor& x_in, double p, const DropoutKey& key) {
  const Tensor x = as_contiguous(x_in, "dropout");
  const Tensor residual = residual_in.defined() ? as_contiguous(residual_in, "dropout") : Tensor();
  Tensor out = at::empty_like(x);
  const auto keep_below = static_cast<uint32_t>(std::lround((1.0 - p) * 65536.0));
  const kernels::DropoutMask mask{key.seed, key.stream, keep_below, 0};
  dispatch(x, [&]<typename T>() {
    const T scale = keep_below == 0 ? T{0} : static_cast<T>(65536.0 / keep_below);
    const T* base = residual.defined() ? residual.data_ptr<T>() : nullptr;
    const T* in = x.data_ptr<T>();
    T* result = out.data_ptr<T>();
    constexpr int64_t kUnit = 1024;  // the kernel requires ranges to begin at multiples of this
    const int64_t n = x.numel();
    parallel_ranges((n + kUnit - 1) / kUnit, 16, [&](int64_t begin, int64_t end) {
      kernels::dropout(mask, scale, base, in, result, begin * kUnit, std::min(end * kUnit, n));
    });
  });
  return out;
}

/// Linear in x with a fixed mask, so its derivative is the same operation on the gradient, to any order.
class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor forward(AutogradContext* ctx, const c10::optional<Tensor>& residual, const Tensor& x, double p,
                        const DropoutKey& key) {
    ctx->saved_data["p"] = p;
    ctx->saved_data["seed"] = static_cast<int64_t>(key.seed);
    ctx->saved_data["stream"] = static_cast<int64_t>(key.stream);
    ctx->saved_data["residual"] = residual.has_value();
    return masked(residual.value_or(Tensor()), x, p, key);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const DropoutKey key{static_cast<uint64_t>(ctx->saved_data["seed"].toInt()),
                         static_cast<uint64_t>(ctx->saved_data["stream"].toInt())};
    const Tensor dx = Dropout::apply(c10::optional<Tensor>(), grad[0], ctx->saved_data["p"].toDouble(), key);
    return {ctx->saved_data["residual"].toBool() ? grad[0] : Tensor(), dx, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  return Dropout::apply(if_defined(residual), x, p, key);
}

}  // namespace plumb::ops::fused
