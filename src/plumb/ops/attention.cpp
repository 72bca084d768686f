#include "plumb/ops/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/kernels/attention.h"

namespace plumb::ops {
namespace {

/// Where query, key and value lie: for self-attention all in `query` (the packed matrix), else key and value in
/// `packed`.
struct Geometry : torch::CustomClassHolder {
  Ragged queries;
  Ragged keys;
  int64_t heads = 1;
  int64_t width = 0;  // d
  bool causal = false;
  bool self = false;

  [[nodiscard]] int64_t key_column() const { return self ? width : 0; }
  [[nodiscard]] int64_t value_column() const { return self ? 2 * width : width; }
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

/// Calls work(head, query offset, key offset, output offset) for every head of every sequence, in parallel.
template <typename T, typename Work>
void for_each_head(const Geometry& g, const Pointers<T>& in, const Work& work) {
  const int64_t size = g.width / g.heads;
  parallel_items(g.queries.sequences() * g.heads, [&](int64_t item) {
    const int64_t sequence = item / g.heads;
    const int64_t column = item % g.heads * size;
    const int64_t query = g.queries.begin(sequence) * in.query_stride + column;
    const int64_t key = g.keys.begin(sequence) * in.key_stride + column;
    const kernels::AttentionHead<T> head{g.queries.length(sequence),
                                         g.keys.length(sequence),
                                         size,
                                         g.causal,
                                         static_cast<T>(1.0 / std::sqrt(static_cast<double>(size))),
                                         in.query + query,
                                         in.query_stride,
                                         in.key + key,
                                         in.value + key,
                                         in.key_stride};
    work(head, query, key, g.queries.begin(sequence) * g.width + column);
  });
}

c10::intrusive_ptr<Geometry> saved_geometry(AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<Geometry>(ctx->saved_data["geometry"].toCapsule());
}

void save_geometry(AutogradContext* ctx, const c10::intrusive_ptr<Geometry>& geometry) {
  ctx->saved_data["geometry"] = c10::IValue::make_capsule(geometry);
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
      for_each_head<T>(
          g, in, [&](const kernels::AttentionHead<T>& head, int64_t query_at, int64_t key_at, int64_t out_at) {
            kernels::attention_backward<T>(
                head, {cotangent + out_at, g.width, out.query + query_at, out.key + key_at, out.value + key_at});
          });
    });
    ctx->save_for_backward({dout_in, query, packed});
    save_geometry(ctx, geometry);
    return g.self ? variable_list{dquery} : variable_list{dquery, dpacked};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto geometry = saved_geometry(ctx);
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
      for_each_head<T>(g, in,
                       [&](const kernels::AttentionHead<T>& head, int64_t query_at, int64_t key_at, int64_t out_at) {
                         kernels::attention_double_backward<T>(
                             head, {dout.data_ptr<T>() + out_at, g.width, cotangent.query + query_at,
                                    cotangent.key + key_at, cotangent.value + key_at, ddout.data_ptr<T>() + out_at,
                                    out.query + query_at, out.key + key_at, out.value + key_at});
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
    Tensor out = at::empty({g.queries.tokens(), g.width}, query.options());
    dispatch(query_rows, [&]<typename T>() {
      const auto in = pointers<T>(g, query_rows, packed_rows);
      T* result = out.data_ptr<T>();
      for_each_head<T>(g, in, [&](const kernels::AttentionHead<T>& head, int64_t, int64_t, int64_t out_at) {
        kernels::attention_forward<T>(head, result + out_at, g.width);
      });
    });
    ctx->save_for_backward({query, packed});
    save_geometry(ctx, geometry);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const auto saved = ctx->get_saved_variables();
    const auto geometry = saved_geometry(ctx);
    const auto gradient = AttentionGradient::apply(grad[0], saved[0], if_defined(saved[1]), geometry);
    return {gradient[0], geometry->self ? Tensor() : gradient[1], Tensor()};
  }
};

c10::intrusive_ptr<Geometry> make_geometry(const Ragged& queries, const Ragged& keys, int64_t heads, int64_t width) {
  if (width % heads != 0) {
    throw Error(fmt::format("{} heads do not divide the width {}", heads, width),
                "choose d_model as a multiple of heads");
  }
  auto geometry = c10::make_intrusive<Geometry>();
  geometry->queries = queries;
  geometry->keys = keys;
  geometry->heads = heads;
  geometry->width = width;
  return geometry;
}

}  // namespace

Tensor self_attention(const Tensor& packed, const Ragged& layout, int64_t heads, bool causal) {
  auto geometry = make_geometry(layout, layout, heads, packed.size(1) / 3);
  geometry->causal = causal;
  geometry->self = true;
  return Attention::apply(packed, c10::optional<Tensor>(), geometry);
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       int64_t heads) {
  if (query_layout.sequences() != key_layout.sequences()) {
    throw Error(fmt::format("attention of {} sequences to {}", query_layout.sequences(), key_layout.sequences()));
  }
  return Attention::apply(query, if_defined(packed), make_geometry(query_layout, key_layout, heads, query.size(1)));
}

Tensor cached_attention(const Tensor& query_in, const CachedKeys& cache, int64_t heads) {
  const Tensor query = as_contiguous(query_in, "attention");
  const int64_t rows = query.size(0);
  const int64_t width = query.size(1);
  const int64_t size = width / heads;
  const size_t length = cache.steps.size();
  Tensor out = at::empty({rows, width}, query.options());
  dispatch(query, [&]<typename T>() {
    const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(size)));
    const T* q = query.data_ptr<T>();
    T* result = out.data_ptr<T>();
    std::vector<const T*> steps;
    for (const Tensor& step : cache.steps) steps.push_back(step.data_ptr<T>());
    parallel_ranges(rows, 4, [&](int64_t begin, int64_t end) {
      std::vector<const T*> keys(length);
      for (int64_t row = begin; row < end; ++row) {
        for (size_t p = 0; p < length; ++p)
          keys[p] = steps[p] + 2 * width * cache.ancestors[p][static_cast<size_t>(row)];
        for (int64_t column = 0; column < width; column += size) {
          const int64_t at = row * width + column;
          kernels::cached_attention<T>({static_cast<int64_t>(length), size, scale, q + at, keys.data(), column, width},
                                       result + at);
        }
      }
    });
  });
  return out;
}

}  // namespace plumb::ops
