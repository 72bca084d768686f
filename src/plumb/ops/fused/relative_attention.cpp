// Blocks of queries, one after another for each head: the scores of a block are all that is held at a time, and heads
// are divided among threads. Within a block, the products with r are taken for distances in falling order, so that
// those of a query lie beside the scores of its keys, shifted by one from query to query.
#include "plumb/ops/relative_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plumb/base/parallel.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/kernels/gemm.h"
#include "plumb/ops/kernels/relative_softmax.h"
#include "plumb/ops/reference/reference.h"

namespace plumb::ops::fused {
namespace {

constexpr int64_t kQueries = 64;  // of a block

struct RelativeShape : torch::CustomClassHolder {
  RelativeShape(Ragged of, const HeadShape& with) : layout(std::move(of)), heads(with) {}
  Ragged layout;
  HeadShape heads;
  [[nodiscard]] float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(heads.size))); }
};
using RelativeShapePointer = c10::intrusive_ptr<RelativeShape>;

/// A matrix in which a head's features are adjacent.
struct Rows {
  float* data;
  int64_t stride;
  explicit Rows(const Tensor& x) : data(x.data_ptr<float>()), stride(x.stride(0)) {}
  [[nodiscard]] float* at(int64_t row, int64_t column) const { return data + row * stride + column; }
};

/// r of one head for distances in falling order, row longest − 1 − d for distance d.
std::vector<float> falling(const Rows& distance, int64_t longest, int64_t column, int64_t size) {
  std::vector<float> rows(static_cast<size_t>(longest * size));
  for (int64_t d = 0; d < longest; ++d)
    std::copy_n(distance.at(d, column), size, rows.data() + (longest - 1 - d) * size);
  return rows;
}

/// One head of one sequence, and its queries [first, first + queries), which see the keys [0, keys()).
struct QueryBlock {
  int64_t begin;  // of the sequence, in tokens
  int64_t first, queries;
  int64_t size;
  int64_t longest;             // rows of r
  int64_t column, key, value;  // of the head in its matrices
  [[nodiscard]] int64_t keys() const { return first + queries; }
  [[nodiscard]] int64_t token() const { return begin + first; }
  /// The keys that query q of the block sees, and where its products with r begin.
  [[nodiscard]] int64_t seen(int64_t q) const { return first + q + 1; }
  [[nodiscard]] int64_t shift(int64_t q) const { return queries - 1 - q; }
  /// The row of r that belongs to the distance of the block's last query and first key.
  [[nodiscard]] int64_t farthest() const { return longest - keys(); }
};

/// Calls work(block) for the blocks of one query head, sequence after sequence.
template <typename Work>
void for_each_block(const RelativeShape& shape, int64_t longest, int64_t head, const Work& work) {
  const HeadShape& heads = shape.heads;
  for (int64_t s = 0; s < shape.layout.sequences(); ++s) {
    for (int64_t first = 0; first < shape.layout.length(s); first += kQueries) {
      const int64_t key = head / heads.group() * heads.size;
      work(QueryBlock{.begin = shape.layout.begin(s),
                      .first = first,
                      .queries = std::min(kQueries, shape.layout.length(s) - first),
                      .size = heads.size,
                      .longest = longest,
                      .column = head * heads.size,
                      .key = key,
                      .value = heads.kv_width() + key});
    }
  }
}

/// rows·matrixᵀ → (queries, keys): the products of the block's queries, or of their gradients, with every key.
void with_keys(const QueryBlock& b, const float* rows, int64_t row_stride, const float* keys, int64_t key_stride,
               float* out) {
  kernels::gemm<float>({.transpose_b = true,
                        .m = b.queries,
                        .n = b.keys(),
                        .k = b.size,
                        .lda = row_stride,
                        .ldb = key_stride,
                        .ldc = b.keys()},
                       rows, keys, out);
}

/// weights·matrix → (queries, size). weights: (queries, keys)
void mixed(const QueryBlock& b, const float* weights, const float* matrix, int64_t stride, float* out,
           int64_t out_stride) {
  kernels::gemm<float>({.m = b.queries, .n = b.size, .k = b.keys(), .lda = b.keys(), .ldb = stride, .ldc = out_stride},
                       weights, matrix, out);
}

/// Adds weightsᵀ·rows, (keys, size), to `sums`. weights: (queries, keys)
void add_transposed(const QueryBlock& b, const float* weights, const float* rows, int64_t row_stride, float* sums,
                    int64_t sum_stride) {
  kernels::gemm<float>({.transpose_a = true,
                        .m = b.keys(),
                        .n = b.size,
                        .k = b.queries,
                        .lda = b.keys(),
                        .ldb = row_stride,
                        .ldc = sum_stride,
                        .accumulate = true},
                       weights, rows, sums);
}

/// The operands of a pass.
struct RelativeInputs {
  Rows content, position, key_value, distance;
};

/// The two products of a block whose sums are its scores, (queries, keys) each.
void score(const QueryBlock& b, const RelativeInputs& in, const float* r, float* by_content, float* by_position) {
  with_keys(b, in.content.at(b.token(), b.column), in.content.stride, in.key_value.at(b.begin, b.key),
            in.key_value.stride, by_content);
  with_keys(b, in.position.at(b.token(), b.column), in.position.stride, r + b.farthest() * b.size, b.size, by_position);
}

/// The memory of a block's matrices, for one thread.
std::vector<float> matrix_for(int64_t longest) { return std::vector<float>(static_cast<size_t>(kQueries * longest)); }

void run_relative(const RelativeShape& shape, const RelativeInputs& in, int64_t longest, const Rows& out,
                  float* log_sums) {
  parallel_items(shape.heads.heads, [&](int64_t head) {
    const std::vector<float> r = falling(in.distance, longest, head * shape.heads.size, shape.heads.size);
    std::vector<float> scores = matrix_for(longest), further = matrix_for(longest);
    for_each_block(shape, longest, head, [&](const QueryBlock& b) {
      score(b, in, r.data(), scores.data(), further.data());
      for (int64_t q = 0; q < b.queries; ++q) {
        float* row = scores.data() + q * b.keys();
        log_sums[head * shape.layout.tokens() + b.token() + q] =
            kernels::relative_softmax(row, further.data() + q * b.keys() + b.shift(q), b.seen(q), shape.scale());
        std::fill(row + b.seen(q), row + b.keys(), 0.0F);
      }
      mixed(b, scores.data(), in.key_value.at(b.begin, b.value), in.key_value.stride, out.at(b.token(), b.column),
            out.stride);
    });
  });
}

struct RelativeGradients {
  Rows content, position, key_value, distance;
};

void run_relative_backward(const RelativeShape& shape, const RelativeInputs& in, int64_t longest, const Rows& out,
                           const float* log_sums, const Rows& dout, const RelativeGradients& to) {
  const int64_t size = shape.heads.size, group = shape.heads.group();
  // Heads that share keys and values add to the same gradients, so one thread has all of them.
  parallel_items(shape.heads.kv_heads, [&](int64_t shared) {
    std::vector<float> weights = matrix_for(longest), further = matrix_for(longest), gradient = matrix_for(longest);
    for (int64_t head = shared * group; head < (shared + 1) * group; ++head) {
      const std::vector<float> r = falling(in.distance, longest, head * size, size);
      std::vector<float> dr(r.size(), 0.0F);
      for_each_block(shape, longest, head, [&](const QueryBlock& b) {
        score(b, in, r.data(), weights.data(), further.data());
        with_keys(b, dout.at(b.token(), b.column), dout.stride, in.key_value.at(b.begin, b.value), in.key_value.stride,
                  gradient.data());
        for (int64_t q = 0; q < b.queries; ++q) {
          float* row = weights.data() + q * b.keys();
          float* beside = further.data() + q * b.keys();
          float* slope = gradient.data() + q * b.keys();
          const float *o = out.at(b.token() + q, b.column), *cotangent = dout.at(b.token() + q, b.column);
          float mean = 0;
          for (int64_t i = 0; i < size; ++i) mean += o[i] * cotangent[i];
          const int64_t seen = b.seen(q);
          kernels::relative_softmax_backward(row, beside + b.shift(q), slope, seen, shape.scale(),
                                             log_sums[head * shape.layout.tokens() + b.token() + q], mean);
          std::fill(row + seen, row + b.keys(), 0.0F);
          std::fill(slope + seen, slope + b.keys(), 0.0F);
          std::fill(beside, beside + b.shift(q), 0.0F);
          std::copy_n(slope, seen, beside + b.shift(q));
        }
        add_transposed(b, weights.data(), dout.at(b.token(), b.column), dout.stride, to.key_value.at(b.begin, b.value),
                       to.key_value.stride);
        mixed(b, gradient.data(), in.key_value.at(b.begin, b.key), in.key_value.stride,
              to.content.at(b.token(), b.column), to.content.stride);
        add_transposed(b, gradient.data(), in.content.at(b.token(), b.column), in.content.stride,
                       to.key_value.at(b.begin, b.key), to.key_value.stride);
        mixed(b, further.data(), r.data() + b.farthest() * size, size, to.position.at(b.token(), b.column),
              to.position.stride);
        add_transposed(b, further.data(), in.position.at(b.token(), b.column), in.position.stride,
                       dr.data() + b.farthest() * size, size);
      });
      for (int64_t d = 0; d < longest; ++d)
        std::copy_n(dr.data() + (longest - 1 - d) * size, size, to.distance.at(d, head * size));
    }
  });
}

/// Tensors whose rows kernels can read: they may have a stride, their elements not.
variable_list in_rows(variable_list tensors) {
  for (Tensor& x : tensors) {
    if (x.stride(1) != 1) x = as_contiguous(x, "attention");
  }
  return tensors;
}

RelativeInputs inputs_of(const variable_list& saved) {
  return {Rows(saved[0]), Rows(saved[1]), Rows(saved[2]), Rows(saved[3])};
}

class RelativeAttention : public torch::autograd::Function<RelativeAttention> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& content, const Tensor& position, const Tensor& key_value,
                        const Tensor& distance, const RelativeShapePointer& shape) {
    const variable_list rows = in_rows({content, position, key_value, distance});
    Tensor out = at::empty({shape->layout.tokens(), shape->heads.width()}, content.options());
    const Tensor log_sums = at::empty({shape->heads.heads, shape->layout.tokens()}, content.options());
    run_relative(*shape, inputs_of(rows), shape->layout.longest(), Rows(out), log_sums.data_ptr<float>());
    ctx->save_for_backward({content, position, key_value, distance, out, log_sums});
    ctx->saved_data["shape"] = c10::IValue::make_capsule(shape);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto shape = c10::static_intrusive_pointer_cast<RelativeShape>(ctx->saved_data["shape"].toCapsule());
    const variable_list saved = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) return differentiable_gradients(saved, *shape, grad[0]);
    const Tensor dout = as_contiguous(grad[0], "attention");
    const variable_list rows = in_rows({saved.begin(), saved.begin() + kInputs});
    variable_list result;
    for (size_t i = 0; i < kInputs; ++i) result.push_back(at::zeros(saved[i].sizes(), saved[i].options()));
    run_relative_backward(*shape, inputs_of(rows), shape->layout.longest(), Rows(saved[kInputs]),
                          saved[kInputs + 1].data_ptr<float>(), Rows(dout),
                          {Rows(result[0]), Rows(result[1]), Rows(result[2]), Rows(result[3])});
    result.emplace_back();
    return result;
  }

 private:
  static constexpr size_t kInputs = 4;

  /// With a graph: those of the reference, computed anew.
  static variable_list differentiable_gradients(const variable_list& saved, const RelativeShape& shape,
                                                const Tensor& grad) {
    variable_list inputs;  // aliases: a tensor that is two of the inputs has a gradient for each
    for (size_t i = 0; i < kInputs; ++i) {
      Tensor alias = at::alias(saved[i]);
      if (!alias.requires_grad()) alias.requires_grad_();
      inputs.push_back(alias);
    }
    const Tensor out =
        reference::relative_attention(inputs[0], inputs[1], inputs[2], inputs[3], shape.layout, shape.heads);
    variable_list found = gradients({out}, inputs, {grad}, /*create_graph=*/true);
    found.emplace_back();
    return found;
  }
};

}  // namespace

Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape) {
  return RelativeAttention::apply(content, position, key_value, distance,
                                  c10::make_intrusive<RelativeShape>(layout, shape));
}

}  // namespace plumb::ops::fused
