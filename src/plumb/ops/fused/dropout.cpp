#include <algorithm>

#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/dropout.h"

namespace plumb::ops::fused {
namespace {

/// Splits the elements [begin, end) of a matrix by runs of rows and calls work(begin, end, first) for each part;
/// `first` is the position of element 0 if the run were extended back to it.
template <typename Work>
void by_run(const std::vector<RowRun>& runs, int64_t width, int64_t begin, int64_t end, const Work& work) {
  if (runs.empty()) return work(begin, end, int64_t{0});
  auto run = std::upper_bound(runs.begin(), runs.end(), begin / width,
                              [](int64_t row, const RowRun& each) { return row < each.begin; });
  for (--run; begin < end; ++run) {
    const int64_t last = run + 1 == runs.end() ? end : std::min(end, (run + 1)->begin * width);
    work(begin, last, (run->origin - run->begin) * width);
    begin = last;
  }
}

Tensor masked(const Tensor& residual_in, const Tensor& x_in, double p, const DropoutKey& key) {
  const Tensor x = as_contiguous(x_in, "dropout");
  const Tensor residual = as_contiguous(residual_in, "dropout");
  Tensor out = at::empty_like(x);
  const KeptShare share = kept_share(p);
  const auto keep_below = static_cast<uint32_t>(share.below);
  dispatch(x, [&]<typename T>() {
    const auto scale = static_cast<T>(share.scale);
    const T* base = residual.defined() ? residual.data_ptr<T>() : nullptr;
    const T* in = x.data_ptr<T>();
    T* result = out.data_ptr<T>();
    const kernels::DropoutKernels<T>& kernel = kernels::dropout<T>();
    constexpr int64_t kUnit = 1024;  // threads start at multiples of this, where the kernel is fastest
    const int64_t n = x.numel();
    const int64_t width = n == 0 ? 1 : n / x.size(0);
    parallel_ranges((n + kUnit - 1) / kUnit, 16, [&](int64_t begin, int64_t end) {
      by_run(key.runs, width, begin * kUnit, std::min(end * kUnit, n), [&](int64_t from, int64_t to, int64_t first) {
        kernel.add({key.seed, key.stream, keep_below, first}, scale, base, in, result, from, to);
      });
    });
  });
  return out;
}

/// What determines a mask, for the backward pass.
struct Mask {
  double p;
  DropoutKey key;
};

/// Linear in x with a fixed mask, so its derivative is the same operation on the gradient, to any order.
class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor forward(AutogradContext* ctx, const c10::optional<Tensor>& residual, const Tensor& x,
                        const Mask& mask) {
    save_value(ctx, mask);
    ctx->saved_data["residual"] = residual.has_value();
    return masked(residual.value_or(Tensor()), x, mask.p, mask.key);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const Tensor dx = Dropout::apply(c10::optional<Tensor>(), grad[0], saved_value<Mask>(ctx));
    return {ctx->saved_data["residual"].toBool() ? grad[0] : Tensor(), dx, Tensor()};
  }
};

}  // namespace

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  return Dropout::apply(if_defined(residual), x, Mask{p, key});
}

}  // namespace plumb::ops::fused
