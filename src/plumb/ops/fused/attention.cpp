#include <algorithm>
#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/autograd.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/kernels/attention.h"

namespace plumb::ops::fused {
namespace {

/// The sequences and heads of an attention. Its inputs are the matrices of queries and of keys with values or, in
/// self-attention, one matrix of all three, whose keys begin at `key_column`.
struct Geometry {
  Ragged queries;
  Ragged keys;
  HeadShape shape;
  int64_t key_column;
  bool causal;
};

template <typename T>
struct Pointers {
  T* query;
  T* key;
  T* value;
  int64_t query_stride;
  int64_t key_stride;
};

template <typename T>
Pointers<T> pointers(const Geometry& g, const variable_list& matrices) {
  T* key = matrices.back().data_ptr<T>() + g.key_column;
  return {matrices.front().data_ptr<T>(), key, key + g.shape.kv_width(), matrices.front().size(1),
          matrices.back().size(1)};
}

template <typename T>
T score_scale(const HeadShape& shape) {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(shape.size)));
}

/// Calls work(head, query offset, key offset, output offset) for every head of every sequence, in parallel. With
/// `by_group`, heads that share keys and values are processed sequentially, because they add to the same gradients.
template <typename T, typename Work>
void for_each_head(const Geometry& g, const Pointers<T>& in, bool by_group, const Work& work) {
  const HeadShape& shape = g.shape;
  const int64_t together = by_group ? shape.group() : 1;
  const int64_t items = shape.heads / together;
  parallel_items(g.queries.sequences() * items, [&](int64_t item) {
    const int64_t sequence = item / items;
    const int64_t first = item % items * together;
    for (int64_t h = first; h < first + together; ++h) {
      const int64_t query = g.queries.begin(sequence) * in.query_stride + h * shape.size;
      const int64_t key = g.keys.begin(sequence) * in.key_stride + h / shape.group() * shape.size;
      const kernels::AttentionHead<T> head{.query_length = g.queries.length(sequence),
                                           .key_length = g.keys.length(sequence),
                                           .size = shape.size,
                                           .causal = g.causal,
                                           .scale = score_scale<T>(shape),
                                           .q = in.query + query,
                                           .q_stride = in.query_stride,
                                           .k = in.key + key,
                                           .v = in.value + key,
                                           .kv_stride = in.key_stride};
      work(head, query, key, g.queries.begin(sequence) * shape.width() + h * shape.size);
    }
  });
}

variable_list contiguous_matrices(at::TensorList matrices) {
  variable_list rows;
  for (const Tensor& matrix : matrices) rows.push_back(as_contiguous(matrix, "attention"));
  return rows;
}

variable_list zeros_of(const variable_list& matrices) {
  variable_list zeros;
  for (const Tensor& matrix : matrices) zeros.push_back(at::zeros_like(matrix));
  return zeros;
}

/// The gradients of the inputs as a function of (dout, inputs); its backward is the double backward.
class AttentionGradient : public torch::autograd::Function<AttentionGradient> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& dout_in, at::TensorList inputs, const Geometry& g) {
    const Tensor dout = as_contiguous(dout_in, "attention");
    const variable_list rows = contiguous_matrices(inputs);
    const variable_list gradients = zeros_of(rows);
    dispatch(dout, [&]<typename T>() {
      const auto in = pointers<T>(g, rows);
      const auto out = pointers<T>(g, gradients);
      const T* cotangent = dout.data_ptr<T>();
      const kernels::AttentionKernels<T>& kernel = kernels::attention<T>();
      for_each_head<T>(g, in, /*by_group=*/true,
                       [&](const kernels::AttentionHead<T>& head, int64_t query_at, int64_t key_at, int64_t out_at) {
                         kernel.backward(head, {.dout = cotangent + out_at,
                                                .dout_stride = g.shape.width(),
                                                .dq = out.query + query_at,
                                                .dk = out.key + key_at,
                                                .dv = out.value + key_at});
                       });
    });
    variable_list saved = inputs.vec();
    saved.push_back(dout_in);
    ctx->save_for_backward(saved);
    save_value(ctx, g);
    return gradients;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grad) {
    const auto& g = saved_value<Geometry>(ctx);
    variable_list rows = contiguous_matrices(ctx->get_saved_variables());
    const Tensor dout = rows.back();
    rows.pop_back();
    const variable_list cotangents = contiguous_matrices(grad);
    const variable_list gradients = zeros_of(rows);
    const Tensor ddout = at::empty_like(dout);
    dispatch(dout, [&]<typename T>() {
      const auto in = pointers<T>(g, rows);
      const auto cotangent = pointers<T>(g, cotangents);
      const auto out = pointers<T>(g, gradients);
      const kernels::AttentionKernels<T>& kernel = kernels::attention<T>();
      for_each_head<T>(g, in, /*by_group=*/true,
                       [&](const kernels::AttentionHead<T>& head, int64_t query_at, int64_t key_at, int64_t out_at) {
                         kernel.double_backward(head, {.dout = dout.data_ptr<T>() + out_at,
                                                       .dout_stride = g.shape.width(),
                                                       .a = cotangent.query + query_at,
                                                       .b = cotangent.key + key_at,
                                                       .c = cotangent.value + key_at,
                                                       .ddout = ddout.data_ptr<T>() + out_at,
                                                       .q_bar = out.query + query_at,
                                                       .k_bar = out.key + key_at,
                                                       .v_bar = out.value + key_at});
                       });
    });
    variable_list result = {ddout};
    result.insert(result.end(), gradients.begin(), gradients.end());
    result.emplace_back();  // of the geometry
    return result;
  }
};

class Attention : public torch::autograd::Function<Attention> {
 public:
  static Tensor forward(AutogradContext* ctx, at::TensorList inputs, const Geometry& g) {
    const variable_list rows = contiguous_matrices(inputs);
    Tensor out = at::empty({g.queries.tokens(), g.shape.width()}, rows.front().options());
    dispatch(out, [&]<typename T>() {
      T* result = out.data_ptr<T>();
      const kernels::AttentionKernels<T>& kernel = kernels::attention<T>();
      for_each_head<T>(g, pointers<T>(g, rows), /*by_group=*/false,
                       [&](const kernels::AttentionHead<T>& head, int64_t, int64_t, int64_t out_at) {
                         kernel.forward(head, result + out_at, g.shape.width());
                       });
    });
    ctx->save_for_backward(inputs.vec());
    save_value(ctx, g);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grad) {
    const variable_list inputs = ctx->get_saved_variables();
    variable_list gradients = AttentionGradient::apply(grad[0], at::TensorList(inputs), saved_value<Geometry>(ctx));
    gradients.emplace_back();  // of the geometry
    return gradients;
  }
};

}  // namespace

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal) {
  return Attention::apply(at::TensorList(packed), Geometry{layout, layout, shape, shape.width(), causal});
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape) {
  const variable_list inputs = {query, packed};
  return Attention::apply(at::TensorList(inputs), Geometry{query_layout, key_layout, shape, 0, /*causal=*/false});
}

Tensor cached_attention(const Tensor& query_in, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape) {
  std::vector<int64_t> row_of(static_cast<size_t>(layout.tokens()));
  int64_t longest = 1;
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    std::fill(row_of.begin() + layout.begin(r), row_of.begin() + layout.begin(r + 1), r);
    longest = std::max(longest, cache.length(r));
  }
  // Threads also divide the heads of a token: a single sequence is decoded one token at a time.
  constexpr int64_t kWorthThread = 1 << 16;  // multiplications that justify a thread
  const int64_t grain = std::max<int64_t>(1, kWorthThread / (2 * longest * shape.size));
  const Tensor query = as_contiguous(query_in, "attention");
  Tensor out = at::empty_like(query);
  const int64_t columns = 2 * shape.kv_width();
  dispatch(query, [&]<typename T>() {
    const kernels::AttentionKernels<T>& kernel = kernels::attention<T>();
    const T scale = score_scale<T>(shape);
    const T* q = query.data_ptr<T>();
    T* result = out.data_ptr<T>();
    std::vector<const T*> blocks;
    for (const Tensor& block : cache.blocks) blocks.push_back(block.data_ptr<T>());
    parallel_ranges(layout.tokens() * shape.heads, grain, [&](int64_t begin, int64_t end) {
      std::vector<const T*> keys;
      int64_t current = -1;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t token = item / shape.heads;
        const int64_t h = item % shape.heads;
        const int64_t row = row_of[static_cast<size_t>(token)];
        const std::vector<CachedKeys::Place>& places = cache.rows[static_cast<size_t>(row)];
        if (row != current) {
          keys.resize(places.size());
          for (size_t p = 0; p < places.size(); ++p) {
            keys[p] = blocks[static_cast<size_t>(places[p].block)] + columns * places[p].row;
          }
          current = row;
        }
        const int64_t at = token * shape.width() + h * shape.size;
        kernel.cached({.length = cache.length(row) - (layout.begin(row + 1) - token) + 1,
                       .size = shape.size,
                       .scale = scale,
                       .q = q + at,
                       .keys = keys.data(),
                       .column = h / shape.group() * shape.size,
                       .value_offset = shape.kv_width()},
                      result + at);
      }
    });
  });
  return out;
}

}  // namespace plumb::ops::fused
