#include <algorithm>
#include <numeric>

#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/cross_entropy.h"
#include "plumb/ops/precision.h"

namespace plumb::ops::fused {
namespace {

/// The targets of all rows of logits.
struct Targets {
  std::vector<int64_t> labels;
  std::vector<double> weights;  // empty: all 1
  double smoothing;
  double scale;

  [[nodiscard]] double weight(int64_t row) const { return weights.empty() ? 1.0 : weights[static_cast<size_t>(row)]; }
  /// The factor of the row's loss in the total.
  [[nodiscard]] double factor(int64_t row) const { return scale * weight(row); }

  template <typename T>
  [[nodiscard]] kernels::CrossEntropyRow<T> row(int64_t vocabulary, int64_t i) const {
    return {vocabulary, labels[static_cast<size_t>(i)], static_cast<T>(smoothing)};
  }
};

/// The weighted losses of all rows.
struct Losses {
  std::vector<double> smoothed, nll;

  explicit Losses(int64_t rows) : smoothed(static_cast<size_t>(rows)), nll(smoothed.size()) {}

  template <typename T>
  void set(int64_t row, double weight, const kernels::RowLoss<T>& loss) {
    smoothed[static_cast<size_t>(row)] = weight * static_cast<double>(loss.smoothed);
    nll[static_cast<size_t>(row)] = weight * static_cast<double>(loss.nll);
  }
};

template <typename T>
using Kernels = kernels::CrossEntropyKernels<T>;
template <typename T>
using Row = kernels::CrossEntropyRow<T>;

/// Calls work(kernels, i, target, x) in parallel for the rows x of `logits`, of which row 0 is row `first` of the
/// targets. Of a row with weight 0, it only fills that of `out` with zeros, if `out` is defined.
template <typename Work>
void for_each_row(const Targets& targets, int64_t first, const Tensor& logits, const Tensor& out, const Work& work) {
  dispatch(logits, [&]<typename T>() {
    const Kernels<T>& kernel = kernels::cross_entropy<T>();
    const int64_t vocabulary = logits.size(1);
    T* in = logits.data_ptr<T>();
    T* result = out.defined() ? out.data_ptr<T>() : nullptr;
    parallel_ranges(logits.size(0), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (targets.weight(first + i) != 0) {
          work(kernel, i, targets.row<T>(vocabulary, first + i), in + i * vocabulary);
        } else if (result != nullptr) {
          std::fill_n(result + i * vocabulary, vocabulary, T{0});
        }
      }
    });
  });
}

double sum_in_order(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// upstream·scale·weight·(softmax − target) as a function of (upstream, logits).
class LogitGradient : public torch::autograd::Function<LogitGradient> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& upstream, const Tensor& logits, const Tensor& partition,
                        const Targets& targets) {
    ctx->save_for_backward({upstream, logits, partition});
    save_value(ctx, targets);
    Tensor out = at::empty_like(logits);
    const int64_t vocabulary = logits.size(1);
    for_each_row(targets, 0, logits, out,
                 [&]<typename T>(const Kernels<T>& kernel, int64_t i, const Row<T>& row, T* x) {
                   kernel.gradient(row, x, partition.data_ptr<T>()[i],
                                   static_cast<T>(targets.factor(i)) * upstream.data_ptr<T>()[0],
                                   out.data_ptr<T>() + i * vocabulary);
                 });
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& upstream = saved[0];
    const Tensor& logits = saved[1];
    const Tensor& partition = saved[2];
    const auto& targets = saved_value<Targets>(ctx);
    const Tensor cotangent = as_contiguous(grad[0], "cross-entropy");
    Tensor dlogits = at::empty_like(logits);
    const int64_t vocabulary = logits.size(1);
    std::vector<double> parts(static_cast<size_t>(logits.size(0)));
    for_each_row(
        targets, 0, logits, dlogits, [&]<typename T>(const Kernels<T>& kernel, int64_t i, const Row<T>& row, T* x) {
          const T part = kernel.curvature(
              row, x, partition.data_ptr<T>()[i], static_cast<T>(targets.factor(i)) * upstream.data_ptr<T>()[0],
              cotangent.data_ptr<T>() + i * vocabulary, dlogits.data_ptr<T>() + i * vocabulary);
          parts[static_cast<size_t>(i)] = targets.weight(i) * static_cast<double>(part);
        });
    const Tensor dupstream = at::full({}, targets.scale * sum_in_order(parts), upstream.options());
    return {dupstream, dlogits, Tensor(), Tensor()};
  }
};

class CrossEntropyOfLogits : public torch::autograd::Function<CrossEntropyOfLogits> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& logits_in, const Targets& targets, double* nll) {
    const Tensor logits = as_contiguous(logits_in, "cross-entropy");
    const int64_t tokens = logits.size(0);
    Tensor partition = at::empty({tokens}, logits.options());
    Losses losses(tokens);
    for_each_row(targets, 0, logits, {}, [&]<typename T>(const Kernels<T>& kernel, int64_t i, const Row<T>& row, T* x) {
      const auto loss = kernel.loss(row, x);
      losses.set(i, targets.weight(i), loss);
      partition.data_ptr<T>()[i] = loss.log_partition;
    });
    *nll = sum_in_order(losses.nll);
    ctx->save_for_backward({logits_in, partition});
    save_value(ctx, targets);
    return at::full({}, targets.scale * sum_in_order(losses.smoothed), logits.options());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    return {
        LogitGradient::apply(grad[0], as_contiguous(saved[0], "cross-entropy"), saved[1], saved_value<Targets>(ctx)),
        Tensor(), Tensor()};
  }
};

class FusedCrossEntropy : public torch::autograd::Function<FusedCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& hidden_in, const Tensor& weight_in,
                        const c10::optional<Tensor>& bias_in, const Targets& targets, bool with_gradient, double* nll) {
    const bool rounded = rounds_to_bfloat16(hidden_in);
    const Tensor hidden = rounded ? to_bfloat16(hidden_in) : as_contiguous(hidden_in, "cross-entropy");
    const Tensor weight = rounded ? to_bfloat16(weight_in) : as_contiguous(weight_in, "cross-entropy");
    const Tensor bias = bias_in.value_or(Tensor());
    const int64_t tokens = hidden.size(0);
    const int64_t vocabulary = weight.size(0);
    // Contiguous, whatever the layout of the inputs.
    const auto zeros = [&](const Tensor& like) {
      return with_gradient && like.defined() ? at::zeros(like.sizes(), like.options()) : Tensor();
    };
    const Tensor dhidden = zeros(hidden_in), dweight = zeros(weight_in), dbias = zeros(bias);
    Losses losses(tokens);
    const int64_t step = chunk_rows(vocabulary);
    for (int64_t first = 0; first < tokens; first += step) {
      const int64_t count = std::min(step, tokens - first);
      const Tensor rows = hidden.narrow(0, first, count);
      Tensor logits = ops::gemm(rows, weight, {.transpose_b = true, .bias = bias});
      const Tensor gradient = with_gradient ? logits : Tensor();
      for_each_row(targets, first, logits, gradient,
                   [&]<typename T>(const Kernels<T>& kernel, int64_t i, const Row<T>& row, T* x) {
                     const int64_t at = first + i;
                     losses.set(at, targets.weight(at),
                                with_gradient ? kernel.with_gradient(row, static_cast<T>(targets.factor(at)), x)
                                              : kernel.loss(row, x));
                   });
      if (with_gradient) {
        if (dbias.defined()) dbias.add_(column_sums(logits));
        if (rounded) logits = to_bfloat16(logits);
        ops::gemm(logits, weight, {.accumulate_into = dhidden.narrow(0, first, count)});
        ops::gemm(logits, rows, {.transpose_a = true, .accumulate_into = dweight});
      }
    }
    *nll = sum_in_order(losses.nll);
    save_value(ctx, variable_list{dhidden, dweight, dbias});
    return at::full({}, targets.scale * sum_in_order(losses.smoothed), hidden_in.options());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    if (at::GradMode::is_enabled()) {
      throw Error("the chunked cross-entropy has no second derivative", "use cross_entropy() for curvature");
    }
    const double upstream = grad[0].item<double>();
    variable_list gradients = saved_value<variable_list>(ctx);
    for (Tensor& gradient : gradients) {
      if (gradient.defined() && upstream != 1.0) gradient = gradient * upstream;
    }
    gradients.resize(6);  // of the other arguments: none
    return gradients;
  }
};

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale) {
  double nll = 0;
  const Tensor loss = CrossEntropyOfLogits::apply(logits, Targets{labels, weights, smoothing, scale}, &nll);
  return {loss, nll};
}

CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale) {
  const bool with_gradient = at::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad() ||
                                                            (bias.defined() && bias.requires_grad()));
  double nll = 0;
  const Tensor loss = FusedCrossEntropy::apply(hidden, weight, if_defined(bias),
                                               Targets{labels, weights, smoothing, scale}, with_gradient, &nll);
  return {loss, nll};
}

}  // namespace plumb::ops::fused
