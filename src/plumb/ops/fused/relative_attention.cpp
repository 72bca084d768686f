#include "plumb/ops/relative_attention.h"

#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/relative_attention.h"

namespace plumb::ops::fused {
namespace {

struct RelativeShape {
  Ragged layout;
  HeadShape heads;
};

/// The rows of a head, starting at this row and column; T: float or const float.
template <typename T>
kernels::RowsOf<T> rows_at(const Tensor& x, int64_t row, int64_t column) {
  return {x.data_ptr<float>() + row * x.stride(0) + column, x.stride(0)};
}

/// Where one head of one sequence begins in the matrices.
struct HeadPlace {
  int64_t head, sequence;
  int64_t row;                 // the first token
  int64_t column, key, value;  // columns in (tokens, width), and of its key and value in key_value
};

/// Calls work(place) for every head of every sequence, in parallel. With `by_group`, heads that add to the gradients of
/// the same keys are processed sequentially. Sequences always are, because they share the gradient of the distances.
template <typename Work>
void for_each_head(const RelativeShape& shape, bool by_group, const Work& work) {
  const HeadShape& heads = shape.heads;
  const int64_t together = by_group ? heads.group() : 1;
  parallel_items(heads.heads / together, [&](int64_t item) {
    for (int64_t head = item * together; head < (item + 1) * together; ++head) {
      const int64_t key = head / heads.group() * heads.size;
      for (int64_t s = 0; s < shape.layout.sequences(); ++s)
        work(HeadPlace{head, s, shape.layout.begin(s), head * heads.size, key, heads.kv_width() + key});
    }
  });
}

kernels::RelativeHead head_at(const RelativeShape& shape, const variable_list& in, const HeadPlace& at) {
  return {.length = shape.layout.length(at.sequence),
          .size = shape.heads.size,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.heads.size))),
          .content = rows_at<const float>(in[0], at.row, at.column),
          .position = rows_at<const float>(in[1], at.row, at.column),
          .key = rows_at<const float>(in[2], at.row, at.key),
          .value = rows_at<const float>(in[2], at.row, at.value),
          .distance = rows_at<const float>(in[3], 0, at.column)};
}

/// Makes the elements of each row contiguous, as the kernels require; rows may be any stride apart.
variable_list in_rows(variable_list tensors) {
  for (Tensor& x : tensors) {
    if (x.stride(1) != 1) x = as_contiguous(x, "attention");
  }
  return tensors;
}

/// log_sums: (heads, tokens)
float* log_sums_at(const Tensor& log_sums, const HeadPlace& at) {
  return log_sums.data_ptr<float>() + at.head * log_sums.stride(0) + at.row;
}

class RelativeAttention : public torch::autograd::Function<RelativeAttention> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& content, const Tensor& position, const Tensor& key_value,
                        const Tensor& distance, const RelativeShape& shape) {
    const variable_list in = in_rows({content, position, key_value, distance});
    Tensor out = at::empty({shape.layout.tokens(), shape.heads.width()}, content.options());
    const Tensor log_sums = at::empty({shape.heads.heads, shape.layout.tokens()}, content.options());
    for_each_head(shape, /*by_group=*/false, [&](const HeadPlace& at) {
      kernels::relative_attention_forward(head_at(shape, in, at), rows_at<float>(out, at.row, at.column),
                                          log_sums_at(log_sums, at));
    });
    ctx->save_for_backward({content, position, key_value, distance, out, log_sums});
    save_value(ctx, shape);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto& shape = saved_value<RelativeShape>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    const variable_list inputs{saved.begin(), saved.begin() + kInputs};
    if (at::GradMode::is_enabled()) {
      return gradients_by_reference(ctx, inputs, grad, [&](const variable_list& x) {
        return variable_list{reference::relative_attention(x[0], x[1], x[2], x[3], shape.layout, shape.heads)};
      });
    }
    const Tensor dout = as_contiguous(grad[0], "attention");
    const variable_list in = in_rows(inputs);
    variable_list result;
    for (size_t i = 0; i < kInputs; ++i) result.push_back(at::zeros(saved[i].sizes(), saved[i].options()));
    for_each_head(shape, /*by_group=*/true, [&](const HeadPlace& at) {
      kernels::relative_attention_backward(head_at(shape, in, at),
                                           {.out = rows_at<const float>(saved[kInputs], at.row, at.column),
                                            .cotangent = rows_at<const float>(dout, at.row, at.column),
                                            .log_sums = log_sums_at(saved[kInputs + 1], at),
                                            .content = rows_at<float>(result[0], at.row, at.column),
                                            .position = rows_at<float>(result[1], at.row, at.column),
                                            .key = rows_at<float>(result[2], at.row, at.key),
                                            .value = rows_at<float>(result[2], at.row, at.value),
                                            .distance = rows_at<float>(result[3], 0, at.column)});
    });
    result.emplace_back();
    return result;
  }

 private:
  static constexpr size_t kInputs = 4;
};

}  // namespace

Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape) {
  return RelativeAttention::apply(content, position, key_value, distance, RelativeShape{layout, shape});
}

}  // namespace plumb::ops::fused
