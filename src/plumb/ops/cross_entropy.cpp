#include "plumb/ops/cross_entropy.h"

#include <algorithm>
#include <numeric>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/kernels/cross_entropy.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

template <typename T>
kernels::CrossEntropyRow<T> row_of(int64_t vocabulary, int64_t label, double smoothing) {
  return {vocabulary, label, static_cast<T>(smoothing)};
}

void check_labels(const std::vector<int64_t>& labels, int64_t tokens, int64_t vocabulary) {
  if (static_cast<int64_t>(labels.size()) != tokens) throw Error("as many labels as tokens are needed");
  for (const int64_t label : labels) {
    if (label < 0 || label >= vocabulary)
      throw Error("a label lies outside the vocabulary", "was the data prepared for this model?");
  }
}

double sum_in_order(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// scale·upstream·(softmax − target) as a function of (upstream, logits).
class LogitGradient : public torch::autograd::Function<LogitGradient> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& upstream, const Tensor& logits, const Tensor& partition,
                        const Tensor& labels, double smoothing, double scale) {
    ctx->save_for_backward({upstream, logits, partition});
    ctx->saved_data["labels"] = labels;
    ctx->saved_data["smoothing"] = smoothing;
    ctx->saved_data["scale"] = scale;
    Tensor out = at::empty_like(logits);
    const int64_t vocabulary = logits.size(1);
    dispatch(logits, [&]<typename T>() {
      const T factor = static_cast<T>(scale) * upstream.data_ptr<T>()[0];
      parallel_ranges(logits.size(0), 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          kernels::cross_entropy_gradient(row_of<T>(vocabulary, labels.data_ptr<int64_t>()[i], smoothing),
                                          logits.data_ptr<T>() + i * vocabulary, partition.data_ptr<T>()[i], factor,
                                          out.data_ptr<T>() + i * vocabulary);
        }
      });
    });
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& upstream = saved[0];
    const Tensor& logits = saved[1];
    const Tensor& partition = saved[2];
    const Tensor labels = ctx->saved_data["labels"].toTensor();
    const double smoothing = ctx->saved_data["smoothing"].toDouble();
    const double scale = ctx->saved_data["scale"].toDouble();
    const Tensor cotangent = as_contiguous(grad[0], "cross-entropy");
    Tensor dlogits = at::empty_like(logits);
    const int64_t vocabulary = logits.size(1);
    std::vector<double> parts(static_cast<size_t>(logits.size(0)));
    dispatch(logits, [&]<typename T>() {
      const T factor = static_cast<T>(scale) * upstream.data_ptr<T>()[0];
      parallel_ranges(logits.size(0), 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          parts[static_cast<size_t>(i)] = static_cast<double>(kernels::cross_entropy_curvature(
              row_of<T>(vocabulary, labels.data_ptr<int64_t>()[i], smoothing), logits.data_ptr<T>() + i * vocabulary,
              partition.data_ptr<T>()[i], factor, cotangent.data_ptr<T>() + i * vocabulary,
              dlogits.data_ptr<T>() + i * vocabulary));
        }
      });
    });
    const Tensor dupstream = at::full({}, scale * sum_in_order(parts), upstream.options());
    return {dupstream, dlogits, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

class CrossEntropyOfLogits : public torch::autograd::Function<CrossEntropyOfLogits> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& logits_in, const Tensor& labels, double smoothing,
                        double scale, double* nll) {
    const Tensor logits = as_contiguous(logits_in, "cross-entropy");
    const int64_t tokens = logits.size(0);
    const int64_t vocabulary = logits.size(1);
    Tensor partition = at::empty({tokens}, logits.options());
    std::vector<double> losses(static_cast<size_t>(tokens));
    std::vector<double> nlls(losses.size());
    dispatch(logits, [&]<typename T>() {
      parallel_ranges(tokens, 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto row = kernels::cross_entropy_loss(row_of<T>(vocabulary, labels.data_ptr<int64_t>()[i], smoothing),
                                                       logits.data_ptr<T>() + i * vocabulary);
          losses[static_cast<size_t>(i)] = static_cast<double>(row.smoothed);
          nlls[static_cast<size_t>(i)] = static_cast<double>(row.nll);
          partition.data_ptr<T>()[i] = row.log_partition;
        }
      });
    });
    *nll = sum_in_order(nlls);
    ctx->save_for_backward({logits_in, partition});
    ctx->saved_data["labels"] = labels;
    ctx->saved_data["smoothing"] = smoothing;
    ctx->saved_data["scale"] = scale;
    return at::full({}, scale * sum_in_order(losses), logits.options());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    return {LogitGradient::apply(grad[0], as_contiguous(saved[0], "cross-entropy"), saved[1],
                                 ctx->saved_data["labels"].toTensor(), ctx->saved_data["smoothing"].toDouble(),
                                 ctx->saved_data["scale"].toDouble()),
            Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

/// Rows of logits held at a time: about 16 MB, many enough for fast products.
int64_t chunk_rows(int64_t vocabulary) { return std::clamp<int64_t>((int64_t{1} << 22) / vocabulary, 64, 1024); }

class FusedCrossEntropy : public torch::autograd::Function<FusedCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& hidden_in, const Tensor& weight_in,
                        const std::vector<int64_t>& labels, double smoothing, double scale, bool with_gradient,
                        double* nll) {
    const bool rounded = rounds_to_bfloat16(hidden_in);
    const Tensor hidden = rounded ? to_bfloat16(hidden_in) : as_contiguous(hidden_in, "cross-entropy");
    const Tensor weight = rounded ? to_bfloat16(weight_in) : as_contiguous(weight_in, "cross-entropy");
    const int64_t tokens = hidden.size(0);
    const int64_t vocabulary = weight.size(0);
    const Tensor dhidden = with_gradient ? at::zeros_like(hidden_in) : Tensor();
    const Tensor dweight = with_gradient ? at::zeros_like(weight_in) : Tensor();
    std::vector<double> losses(static_cast<size_t>(tokens));
    std::vector<double> nlls(losses.size());
    const int64_t step = chunk_rows(vocabulary);
    for (int64_t first = 0; first < tokens; first += step) {
      const int64_t count = std::min(step, tokens - first);
      const Tensor rows = hidden.narrow(0, first, count);
      Tensor logits = gemm(rows, weight, {.transpose_b = true});
      dispatch(logits, [&]<typename T>() {
        T* data = logits.data_ptr<T>();
        parallel_ranges(count, 4, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const auto at = static_cast<size_t>(first + i);
            const auto row = row_of<T>(vocabulary, labels[at], smoothing);
            const auto loss = kernels::cross_entropy_loss(row, data + i * vocabulary);
            losses[at] = static_cast<double>(loss.smoothed);
            nlls[at] = static_cast<double>(loss.nll);
            if (with_gradient) {
              kernels::cross_entropy_gradient(row, data + i * vocabulary, loss.log_partition, static_cast<T>(scale),
                                              data + i * vocabulary);
            }
          }
        });
      });
      if (with_gradient) {
        if (rounded) logits = to_bfloat16(logits);
        gemm(logits, weight, {.accumulate_into = dhidden.narrow(0, first, count)});
        gemm(logits, rows, {.transpose_a = true, .accumulate_into = dweight});
      }
    }
    *nll = sum_in_order(nlls);
    ctx->saved_data["dhidden"] = dhidden;
    ctx->saved_data["dweight"] = dweight;
    return at::full({}, scale * sum_in_order(losses), hidden_in.options());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    if (at::GradMode::is_enabled()) {
      throw Error("the chunked cross-entropy was asked for a second derivative",
                  "use cross_entropy() where curvature is wanted");
    }
    const double upstream = grad[0].item<double>();
    const auto scaled = [&](const char* name) {
      Tensor gradient = ctx->saved_data[name].toTensor();
      if (upstream != 1.0) gradient = gradient * upstream;
      return gradient;
    };
    return {scaled("dhidden"), scaled("dweight"), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, double smoothing, double scale) {
  check_labels(labels, logits.size(0), logits.size(1));
  CrossEntropy result;
  result.loss = CrossEntropyOfLogits::apply(logits, at::tensor(labels, at::kLong), smoothing, scale, &result.nll);
  return result;
}

CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const std::vector<int64_t>& labels,
                                  double smoothing, double scale) {
  check_labels(labels, hidden.size(0), weight.size(0));
  CrossEntropy result;
  const bool with_gradient = at::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad());
  result.loss = FusedCrossEntropy::apply(hidden, weight, labels, smoothing, scale, with_gradient, &result.nll);
  return result;
}

}  // namespace plumb::ops
