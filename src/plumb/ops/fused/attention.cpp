
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

/// Where query, key and value are stored: in self-attention, all in `query` (the packed matrix); otherwise key and
/// value in `packed`.
struct Geometry : torch::CustomClassHolder {
  Ragged queries;
  Ragged keys;
  HeadShape shape;
  bool causal = false;
  bool self = false;

  [[nodiscard]] int64_t key_column() const { return self ? shape.width() : 0; }
  [[nodiscard]] int64_t value_column() const { return key_column() + shape.kv_width(); }
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
Pointers<T> pointers(const Geometry& g, const Tensor& query, const Tensor& packed) {
  T* kv = g.self ? query.data_ptr<T>() : packed.data_ptr<T>();
  return {query.data_ptr<T>(), kv + g.key_column(), kv + g.value_column(), query.size(1),
          g.self ? query.size(1) : packed.size(1)};
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

Tensor zeros_like_if_defined(const Tensor& tensor) { return tensor.defined() ? at::zeros_like(tensor) : Tensor(); }
Tensor contiguous_if_defined(const Tensor& tensor) {
  return tensor.defined() ? as_contiguous(tensor, "attention") : Tensor();
}

/// The gradients of `query` and `packed` as a function of (dout, query, packed); its backward is the double backward.
class AttentionGradient : public torch::autograd::Function<AttentionGradient> {
 public:
  static variable_list forward(AutogradContext* ctx, const Tensor& dout_in, const Tensor& query,
                               const c10::optional<Tensor>& packed_in, const c10::intrusive_ptr<Geometry>& geometry) {
    const Geometry& g = *geometry;
    const Tensor packed = packed_in.value_or(Tensor());
    const Tensor dout = as_contiguous(dout_in, "attention");
    const Tensor query_rows = as_contiguous(query, "attention");
    const Tensor packed_rows = contiguous_if_defined(packed);
    const Tensor dquery = at::zeros_like(query_rows);
    const Tensor dpacked = zeros_like_if_defined(packed_rows);
    dispatch(dout, [&]<typename T>() {
      const auto in = pointers<T>(g, query_rows, packed_rows);
      const auto out = pointers<T>(g, dquery, dpacked);
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
    ctx->save_for_backward({dout_in, query, packed});
    save_value(ctx, geometry);
    return g.self ? variable_list{dquery} : variable_list{dquery, dpacked};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto geometry = saved_value<Geometry>(ctx);
    const Geometry& g = *geometry;
    const auto saved = ctx->get_saved_variables();
    const Tensor dout = as_contiguous(saved[0], "attention");
    const Tensor query = as_contiguous(saved[1], "attention");
    const Tensor packed = contiguous_if_defined(saved[2]);
    const Tensor query_cotangent = as_contiguous(grad[0], "attention");
    const Tensor packed_cotangent = g.self ? Tensor() : as_contiguous(grad[1], "attention");
    const Tensor ddout = at::empty_like(dout);
    const Tensor dquery = at::zeros_like(query);
    const Tensor dpacked = zeros_like_if_defined(packed);
    dispatch(dout, [&]<typename T>() {
      const auto in = pointers<T>(g, query, packed);
      const auto cotangent = pointers<T>(g, query_cotangent, packed_cotangent);
      const auto out = pointers<T>(g, dquery, dpacked);
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
    return {ddout, dquery, dpacked, Tensor()};
  }
};

class Attention : public torch::autograd::Function<Attention> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& query, const c10::optional<Tensor>& packed_in,
                        const c10::intrusive_ptr<Geometry>& geometry) {
    const Geometry& g = *geometry;
    const Tensor packed = packed_in.value_or(Tensor());
    const Tensor query_rows = as_contiguous(query, "attention");
    const Tensor packed_rows = contiguous_if_defined(packed);
    Tensor out = at::empty({g.queries.tokens(), g.shape.width()}, query.options());
    dispatch(query_rows, [&]<typename T>() {
      const auto in = pointers<T>(g, query_rows, packed_rows);
      T* result = out.data_ptr<T>();
      const kernels::AttentionKernels<T>& kernel = kernels::attention<T>();
      for_each_head<T>(g, in, /*by_group=*/false,
                       [&](const kernels::AttentionHead<T>& head, int64_t, int64_t, int64_t out_at) {
                         kernel.forward(head, result + out_at, g.shape.width());
                       });
    });
    ctx->save_for_backward({query, packed});
    save_value(ctx, geometry);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const auto geometry = saved_value<Geometry>(ctx);
    const auto gradient = AttentionGradient::apply(grad[0], saved[0], if_defined(saved[1]), geometry);
    return {gradient[0], geometry->self ? Tensor() : gradient[1], Tensor()};
  }
};

c10::intrusive_ptr<Geometry> make_geometry(const Ragged& queries, const Ragged& keys, const HeadShape& shape) {
  auto geometry = c10::make_intrusive<Geometry>();
  geometry->queries = queries;
  geometry->keys = keys;
  geometry->shape = shape;
  return geometry;
}

}  // namespace

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal) {
  auto geometry = make_geometry(layout, layout, shape);
  geometry->causal = causal;
  geometry->self = true;
  return Attention::apply(packed, c10::optional<Tensor>(), geometry);
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape) {
  return Attention::apply(query, if_defined(packed), make_geometry(query_layout, key_layout, shape));
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
