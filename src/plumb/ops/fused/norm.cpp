#include "plumb/ops/kernels/norm.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::fused {
namespace {

/// Sums over tokens are computed in this many parts, added in order: the same result for any number of threads.
constexpr int64_t kParts = 16;

/// Calls work(part, begin, end) for each of kParts ranges of rows.
template <typename Work>
void for_row_parts(int64_t rows, const Work& work) {
  parallel_ranges(kParts, rows < 64 ? kParts : 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = rows * part / kParts;
      const int64_t end = rows * (part + 1) / kParts;
      if (begin < end) work(part, begin, end);
    }
  });
}

/// dx, dγ, dβ as a function of (dy, x, γ); its backward is the kernels' double backward.
class NormGradient : public torch::autograd::Function<NormGradient> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& dy_in, const Tensor& x, const Tensor& gamma,
                               const Tensor& statistics, bool center) {
    const Tensor dy = as_contiguous(dy_in, "norm");
    const int64_t width = x.size(1);
    Tensor dx = at::empty_like(x);
    Tensor dgamma = at::zeros({kParts, width}, x.options());
    Tensor dbeta = at::zeros({kParts, width}, x.options());
    dispatch(x, [&]<typename T>() {
      for_row_parts(x.size(0), [&](int64_t part, int64_t begin, int64_t end) {
        kernels::norm<T>().backward({.width = width,
                                     .center = center,
                                     .x = x.data_ptr<T>(),
                                     .gamma = gamma.data_ptr<T>(),
                                     .statistics = statistics.data_ptr<T>(),
                                     .dy = dy.data_ptr<T>(),
                                     .dx = dx.data_ptr<T>(),
                                     .dgamma = dgamma.data_ptr<T>() + part * width,
                                     .dbeta = center ? dbeta.data_ptr<T>() + part * width : nullptr},
                                    begin, end);
      });
    });
    ctx->save_for_backward({dy, x, gamma, statistics});
    ctx->saved_data["center"] = center;
    return {dx, dgamma.sum(0), dbeta.sum(0)};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& dy = saved[0];
    const Tensor& x = saved[1];
    const Tensor& gamma = saved[2];
    const Tensor& statistics = saved[3];
    const bool center = ctx->saved_data["center"].toBool();
    const int64_t width = x.size(1);
    const Tensor a = as_contiguous(grad[0], "norm");
    const Tensor b = as_contiguous(grad[1], "norm");
    const Tensor c = as_contiguous(grad[2], "norm");
    Tensor ddy = at::empty_like(x);
    Tensor dx = at::empty_like(x);
    Tensor dgamma = at::zeros({kParts, width}, x.options());
    dispatch(x, [&]<typename T>() {
      for_row_parts(x.size(0), [&](int64_t part, int64_t begin, int64_t end) {
        kernels::norm<T>().double_backward({.width = width,
                                            .center = center,
                                            .x = x.data_ptr<T>(),
                                            .gamma = gamma.data_ptr<T>(),
                                            .statistics = statistics.data_ptr<T>(),
                                            .dy = dy.data_ptr<T>(),
                                            .a = a.data_ptr<T>(),
                                            .b = b.data_ptr<T>(),
                                            .c = center ? c.data_ptr<T>() : nullptr,
                                            .ddy = ddy.data_ptr<T>(),
                                            .dx = dx.data_ptr<T>(),
                                            .dgamma = dgamma.data_ptr<T>() + part * width},
                                           begin, end);
      });
    });
    return {ddy, dx, dgamma.sum(0), Tensor(), Tensor()};
  }
};

class Norm : public torch::autograd::Function<Norm> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& gamma,
                        const c10::optional<Tensor>& beta, double eps) {
    const Tensor x = as_contiguous(x_in, "norm");
    const Tensor scale = as_contiguous(gamma, "norm"), shift = as_contiguous(beta.value_or(Tensor()), "norm");
    const bool center = beta.has_value();
    const int64_t width = x.size(1);
    Tensor y = at::empty_like(x);
    Tensor statistics = at::empty({x.size(0), 2}, x.options());
    dispatch(x, [&]<typename T>() {
      const kernels::NormForward<T> pass{.width = width,
                                         .center = center,
                                         .eps = static_cast<T>(eps),
                                         .x = x.data_ptr<T>(),
                                         .gamma = scale.data_ptr<T>(),
                                         .beta = center ? shift.data_ptr<T>() : nullptr,
                                         .y = y.data_ptr<T>(),
                                         .statistics = statistics.data_ptr<T>()};
      parallel_ranges(x.size(0), 16, [&](int64_t begin, int64_t end) { kernels::norm<T>().forward(pass, begin, end); });
    });
    ctx->save_for_backward({x_in, gamma, statistics});
    ctx->saved_data["center"] = center;
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const bool center = ctx->saved_data["center"].toBool();
    const auto result = NormGradient::apply(grad[0], as_contiguous(saved[0], "norm"), as_contiguous(saved[1], "norm"),
                                            saved[2], center);
    return {result[0], result[1], center ? result[2] : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return Norm::apply(x, gamma, if_defined(beta), eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  return Norm::apply(x, gamma, c10::optional<Tensor>(), eps);
}

}  // namespace plumb::ops::fused
