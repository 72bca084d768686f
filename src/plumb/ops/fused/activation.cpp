#include "plumb/ops/kernels/activation.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::fused {
namespace {

using kernels::LogisticGate;

/// A tensor like x, of which work.operator()<T>(out, begin, end) writes the elements [begin, end).
template <typename Work>
Tensor element_by_element(const Tensor& x, const Work& work) {
  Tensor out = at::empty_like(x);
  dispatch(x, [&]<typename T>() {
    T* result = out.data_ptr<T>();
    parallel_ranges(x.numel(), 1 << 13, [&](int64_t begin, int64_t end) { work(result, begin, end); });
  });
  return out;
}

/// dx as a function of (dy, x). Its backward is the kernels' double backward.
class LogisticGateGradient : public torch::autograd::Function<LogisticGateGradient> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& dy_in, const Tensor& x, const LogisticGate& gate) {
    const Tensor dy = as_contiguous(dy_in, "activation");
    ctx->save_for_backward({dy, x});
    save_value(ctx, gate);
    return element_by_element(x, [&]<typename T>(T* dx, int64_t begin, int64_t end) {
      kernels::logistic_gate<T>().backward(gate, dy.data_ptr<T>(), x.data_ptr<T>(), dx, begin, end);
    });
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& dy = saved[0];
    const Tensor& x = saved[1];
    const auto& gate = saved_value<LogisticGate>(ctx);
    const Tensor a = as_contiguous(grad[0], "activation");
    const Tensor dx = element_by_element(x, [&]<typename T>(T* out, int64_t begin, int64_t end) {
      kernels::logistic_gate<T>().double_backward(gate, a.data_ptr<T>(), dy.data_ptr<T>(), x.data_ptr<T>(), out, begin,
                                                  end);
    });
    return {LogisticGateGradient::apply(a, x, gate), dx, Tensor()};
  }
};

class LogisticGating : public torch::autograd::Function<LogisticGating> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const LogisticGate& gate) {
    const Tensor x = as_contiguous(x_in, "activation");
    ctx->save_for_backward({x_in});
    save_value(ctx, gate);
    return element_by_element(x, [&]<typename T>(T* y, int64_t begin, int64_t end) {
      kernels::logistic_gate<T>().forward(gate, x.data_ptr<T>(), y, begin, end);
    });
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const Tensor x = as_contiguous(ctx->get_saved_variables()[0], "activation");
    return {LogisticGateGradient::apply(grad[0], x, saved_value<LogisticGate>(ctx)), Tensor()};
  }
};

}  // namespace

Tensor silu(const Tensor& x) { return LogisticGating::apply(x, LogisticGate{1, 0}); }

Tensor gelu_tanh(const Tensor& x) {
  return LogisticGating::apply(x, LogisticGate{2 * std::sqrt(2 / std::numbers::pi), 0.044715});
}

}  // namespace plumb::ops::fused
