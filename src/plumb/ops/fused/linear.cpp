#include <algorithm>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/elementwise.h"
#include "plumb/ops/kernels/gemm.h"

namespace plumb::ops::fused {
namespace {

/// The matrix itself if its rows are contiguous, else a copy.
Tensor with_contiguous_rows(const Tensor& matrix) {
  const bool usable = matrix.stride(1) == 1 && matrix.stride(0) >= matrix.size(1);
  return usable || matrix.size(0) == 0 ? matrix : as_contiguous(matrix, "matrix product");
}

/// Calls work(elements of a, elements of b) for the operands of a product, both float32 or both bfloat16.
template <typename Work>
void with_elements(const Tensor& a, const Tensor& b, const Work& work) {
  const auto with = [&]<typename T>(const T* left) { work(left, static_cast<const T*>(b.data_ptr())); };
  if (a.scalar_type() == at::kBFloat16) return with(static_cast<const kernels::Bfloat16*>(a.data_ptr()));
  with(static_cast<const float*>(a.data_ptr<float>()));
}

Tensor column_sums_kernel(const Tensor& x_in) {
  const Tensor x = as_contiguous(x_in, "column sums");
  const int64_t rows = x.size(0);
  const int64_t width = x.size(1);
  Tensor sums = at::zeros({width}, x.options());
  // Partial sums over a fixed number of row ranges, added in order: the same result for any number of threads.
  constexpr int64_t kParts = 8;
  if (rows < 8 * kParts) {
    dispatch(x, [&]<typename T>() {
      kernels::elementwise<T>().column_sums(x.data_ptr<T>(), width, 0, rows, sums.data_ptr<T>());
    });
    return sums;
  }
  const Tensor parts = at::zeros({kParts, width}, x.options());
  dispatch(x, [&]<typename T>() {
    const auto add = kernels::elementwise<T>().column_sums;
    const T* in = x.data_ptr<T>();
    T* out = parts.data_ptr<T>();
    parallel_ranges(kParts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        add(in, width, rows * part / kParts, rows * (part + 1) / kParts, out + part * width);
      }
    });
    add(out, width, 0, kParts, sums.data_ptr<T>());
  });
  return sums;
}

class MatMul : public torch::autograd::Function<MatMul> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
    ctx->save_for_backward({a, b});
    ctx->saved_data["ta"] = transpose_a;
    ctx->saved_data["tb"] = transpose_b;
    return ops::gemm(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& a = saved[0];
    const Tensor& b = saved[1];
    const bool ta = ctx->saved_data["ta"].toBool();
    const bool tb = ctx->saved_data["tb"].toBool();
    const Tensor& dc = grad[0];
    Tensor da;
    Tensor db;
    // Computes only the gradients that are needed: one of the two for a diagonal block of the Hessian.
    if (ctx->needs_input_grad(0)) da = ta ? matrix_product(b, dc, tb, true) : matrix_product(dc, b, false, !tb);
    if (ctx->needs_input_grad(1)) db = tb ? matrix_product(dc, a, true, ta) : matrix_product(a, dc, !ta, false);
    return {da, db, Tensor(), Tensor()};
  }
};

/// dy where y > 0. Linear in dy; its derivative with respect to y is 0 almost everywhere.
class ReluMask : public torch::autograd::Function<ReluMask> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& dy, const Tensor& y) {
    ctx->save_for_backward({y});
    const Tensor gradient = as_contiguous(dy, "relu");
    Tensor dx = at::empty_like(y);
    dispatch(y, [&]<typename T>() {
      const T* in = gradient.data_ptr<T>();
      const T* gate = y.data_ptr<T>();
      T* out = dx.data_ptr<T>();
      parallel_ranges(y.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
        kernels::elementwise<T>().relu_backward(in, gate, out, begin, end);
      });
    });
    return dx;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    return {ReluMask::apply(grad[0], ctx->get_saved_variables()[0]), Tensor()};
  }
};

class ColumnSums : public torch::autograd::Function<ColumnSums> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->saved_data["rows"] = x.size(0);
    return column_sums_kernel(x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    return {grad[0].unsqueeze(0).expand({ctx->saved_data["rows"].toInt(), -1})};
  }
};

}  // namespace

Tensor gemm(const Tensor& a_in, const Tensor& b_in, const GemmOptions& options) {
  const Tensor a = with_contiguous_rows(a_in);
  const Tensor b = with_contiguous_rows(b_in);
  const int64_t m = a.size(options.transpose_a ? 1 : 0);
  const int64_t k = a.size(options.transpose_a ? 0 : 1);
  const int64_t n = b.size(options.transpose_b ? 0 : 1);
  const Tensor bias = as_contiguous(options.bias, "matrix product");
  const bool accumulate = options.accumulate_into.defined();
  Tensor c = accumulate ? options.accumulate_into : at::empty({m, n}, a.options().dtype(at::kFloat));
  const kernels::Product product{.transpose_a = options.transpose_a,
                                 .transpose_b = options.transpose_b,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .lda = a.stride(0),
                                 .ldb = b.stride(0),
                                 .ldc = c.stride(0),
                                 .accumulate = accumulate,
                                 .relu = options.relu,
                                 .bias = bias.defined() ? bias.data_ptr<float>() : nullptr};
  with_elements(a, b, [&]<typename T>(const T* left, const T* right) {
    kernels::gemm(product, left, right, c.data_ptr<float>());
  });
  return c;
}

Tensor symmetric_product(const Tensor& a_in, const Tensor& b_in, const SymmetricOptions& options) {
  const Tensor a = with_contiguous_rows(a_in);
  const Tensor b = with_contiguous_rows(b_in);
  const int64_t n = a.size(0);
  Tensor c = at::empty({n, n}, a.options().dtype(at::kFloat));
  with_elements(a, b, [&]<typename T>(const T* left, const T* right) {
    constexpr int64_t kRows = 128;  // fewer would slow the product more than they save
    for (int64_t begin = 0; begin < n; begin += kRows) {
      const int64_t end = std::min(n, begin + kRows);
      kernels::gemm<T>({.transpose_b = true,
                        .m = end - begin,
                        .n = end,
                        .k = a.size(1),
                        .lda = a.stride(0),
                        .ldb = b.stride(0),
                        .ldc = n},
                       left + begin * a.stride(0), right, c.data_ptr<float>() + begin * n);
    }
  });
  const kernels::Completion completion{.scale = static_cast<float>(options.scale),
                                       .plus_scale = static_cast<float>(options.plus_scale),
                                       .diagonal = static_cast<float>(options.diagonal)};
  const Tensor plus = as_contiguous(options.plus, "symmetric product");
  parallel_items((n + kernels::kCompletedRows - 1) / kernels::kCompletedRows, [&](int64_t item) {
    const int64_t begin = item * kernels::kCompletedRows;
    kernels::complete_symmetric(completion, plus.defined() ? plus.data_ptr<float>() : nullptr, c.data_ptr<float>(), n,
                                begin, std::min(n, begin + kernels::kCompletedRows));
  });
  return c;
}

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return MatMul::apply(a, b, transpose_a, transpose_b);
}

Tensor column_sums(const Tensor& x) { return ColumnSums::apply(x); }

Tensor relu_gradient(const Tensor& dy, const Tensor& y) { return ReluMask::apply(dy, y); }

}  // namespace plumb::ops::fused
