#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/attention.cpp"
#include "plumb/ops/kernels/attention.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/tile-inl.h"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// Softmax in place over the first `keys` of the row's `width` scores, which may be none; the others become 0.
template <typename T>
void softmax_row(T* row, int64_t keys, int64_t width) {
  if (keys == 0) return std::fill(row, row + width, T{0});
  const hn::ScalableTag<T> d;
  const auto largest = hn::Set(d, reduce_max(keys, row));
  const T sum = map_and_sum(keys, row, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(row), largest)); });
  const auto inverse = hn::Set(d, T{1} / sum);
  map_to(keys, row, [&](auto load) HWY_ATTR { return hn::Mul(load(row), inverse); });
  std::fill(row + keys, row + width, T{0});
}

template <typename T>
T row_dot(int64_t n, const T* x, const T* y) {
  return reduce_sum<T>(n, [&](auto load) HWY_ATTR { return hn::Mul(load(x), load(y)); });
}

constexpr int64_t kQueryBlock = 48;

/// A block of query rows [begin, begin + rows) and the number of keys that any of them sees.
template <typename T>
struct Block {
  int64_t begin;
  int64_t rows;
  int64_t keys;
};

template <typename T, typename F>
void for_each_block(const AttentionHead<T>& head, const F& f) {
  for (int64_t begin = 0; begin < head.query_length; begin += kQueryBlock) {
    const int64_t rows = std::min(kQueryBlock, head.query_length - begin);
    f(Block<T>{begin, rows, head.causal ? std::min(head.key_length, begin + rows) : head.key_length});
  }
}

/// P of one block: (rows, keys), with row stride spread_stride(key_length). kt: k transposed.
template <typename T>
void probabilities(const AttentionHead<T>& head, const Block<T>& block, Right<T> kt, T* p) {
  const int64_t stride = spread_stride(head.key_length);
  product(block.rows, block.keys, head.size, head.scale,
          Left<T>{head.q + block.begin * head.q_stride, head.q_stride, 1}, kt, false, p, stride);
  for (int64_t i = 0; i < block.rows; ++i) {
    softmax_row(p + i * stride, head.causal ? std::min(block.begin + i + 1, block.keys) : block.keys, block.keys);
  }
}

/// out = Σ_i p[i] · value(i), for kVectors · lanes elements or, if kVectors is 1, min(n, lanes).
template <int kVectors, typename T, typename Value>
HWY_INLINE void weighted_sum(int64_t length, int64_t n, const T* p, const Value& value, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(std::min(n, lanes)));
  hn::Vec<decltype(d)> sum[kVectors];
  for (int j = 0; j < kVectors; ++j) sum[j] = hn::Zero(d);
  for (int64_t i = 0; i < length; ++i) {
    const auto weight = hn::Set(d, p[i]);
    const T* v = value(i);
    for (int j = 0; j < kVectors; ++j) {
      sum[j] = hn::MulAdd(weight, kVectors > 1 ? hn::LoadU(d, v + j * lanes) : load_first(d, mask, n, v), sum[j]);
    }
  }
  for (int j = 0; j < kVectors; ++j)
    kVectors > 1 ? hn::StoreU(sum[j], d, out + j * lanes) : store_first(sum[j], d, mask, n, out);
}

/// p[i] = scale · q·key(i) for four keys: q is read only once, and the four sums hide each other's latency.
template <typename T, typename Key>
HWY_INLINE void four_scores(int64_t size, T scale, const T* q, const Key& key, int64_t i, T* p) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* k[4] = {key(i), key(i + 1), key(i + 2), key(i + 3)};
  hn::Vec<decltype(d)> sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t c = 0;
  for (; c + lanes <= size; c += lanes) {
    const auto query = hn::LoadU(d, q + c);
    for (int j = 0; j < 4; ++j) sum[j] = hn::MulAdd(query, hn::LoadU(d, k[j] + c), sum[j]);
  }
  if (c < size) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(size - c));
    const auto query = load_first(d, mask, size - c, q + c);
    for (int j = 0; j < 4; ++j) sum[j] = hn::MulAdd(query, load_first(d, mask, size - c, k[j] + c), sum[j]);
  }
  for (int j = 0; j < 4; ++j) p[i + j] = scale * hn::GetLane(hn::SumOfLanes(d, sum[j]));
}

/// One query by dot products: for too few queries to justify transposing the keys.
template <typename T, typename Key>
HWY_INLINE void attend(int64_t length, int64_t size, T scale, const T* q, const Key& key, int64_t value_offset,
                       T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  T* p = scratch<T>(static_cast<size_t>(length));
  int64_t i = 0;
  for (; i + 4 <= length; i += 4) four_scores(size, scale, q, key, i, p);
  for (; i < length; ++i) p[i] = scale * row_dot(size, q, key(i));
  softmax_row(p, length, length);
  int64_t j = 0;
  const auto value = [&](int64_t at) { return key(at) + value_offset + j; };
  for (; j + 4 * lanes <= size; j += 4 * lanes) weighted_sum<4>(length, 4 * lanes, p, value, out + j);
  for (; j < size; j += lanes) weighted_sum<1>(length, size - j, p, value, out + j);
}

template <typename T>
void cached(const CachedHead<T>& head, T* out) {
  const auto key = [&](int64_t i) { return head.keys[i] + head.column; };
  attend(head.length, head.size, head.scale, head.q, key, head.value_offset, out);
}

constexpr int64_t kFewQueries = 6;

template <typename T>
void forward(const AttentionHead<T>& head, T* out, int64_t out_stride) {
  const int64_t n = head.key_length;
  if (head.query_length <= kFewQueries && !head.causal) {
    const auto key = [&](int64_t i) { return head.k + i * head.kv_stride; };
    for (int64_t i = 0; i < head.query_length; ++i) {
      attend(n, head.size, head.scale, head.q + i * head.q_stride, key, head.v - head.k, out + i * out_stride);
    }
    return;
  }
  const int64_t stride = spread_stride(n);
  const int64_t packed = packed_size<T>(n, head.size);
  T* memory = scratch<T>(static_cast<size_t>(packed + n * head.size + stride * kQueryBlock));
  const Right<T> kt = packed_columns(n, head.size, head.k, head.kv_stride, memory);
  T* values = memory + packed;
  copy_rows(n, head.size, head.v, head.kv_stride, values);
  T* p = values + n * head.size;
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    probabilities(head, block, kt, p);
    product(block.rows, head.size, block.keys, T{1}, Left<T>{p, stride, 1}, by_rows(values, head.size), false,
            out + block.begin * out_stride, out_stride);
  });
}

template <typename T>
void backward(const AttentionHead<T>& head, const AttentionBackward<T>& g) {
  const hn::ScalableTag<T> d;
  const int64_t n = head.key_length;
  const int64_t stride = spread_stride(n);
  const int64_t size = head.size;
  const int64_t packed = packed_size<T>(n, size);
  T* memory = scratch<T>(static_cast<size_t>(2 * packed + 3 * n * size + 2 * kQueryBlock * (size + stride)));
  const Right<T> kt = packed_columns(n, size, head.k, head.kv_stride, memory);
  const Right<T> vt = packed_columns(n, size, head.v, head.kv_stride, memory + packed);
  T* k = memory + 2 * packed;
  T* dk = k + n * size;
  T* dv = dk + n * size;
  T* q = dv + n * size;
  T* dout = q + kQueryBlock * size;
  T* p = dout + kQueryBlock * size;
  T* dp = p + kQueryBlock * stride;
  copy_rows(n, size, head.k, head.kv_stride, k);
  std::fill_n(dk, 2 * n * size, T{0});
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    copy_rows(block.rows, size, head.q + block.begin * head.q_stride, head.q_stride, q);
    copy_rows(block.rows, size, g.dout + block.begin * g.dout_stride, g.dout_stride, dout);
    probabilities(head, block, kt, p);
    product(block.keys, size, block.rows, T{1}, Left<T>{p, 1, stride}, by_rows(dout, size), true, dv, size);
    product(block.rows, block.keys, size, T{1}, Left<T>{dout, size, 1}, vt, false, dp, stride);
    for (int64_t i = 0; i < block.rows; ++i) {
      const T* pi = p + i * stride;
      T* dpi = dp + i * stride;
      const auto rho = hn::Set(d, row_dot(block.keys, pi, dpi));
      map_to(block.keys, dpi, [&](auto load) HWY_ATTR { return hn::Mul(load(pi), hn::Sub(load(dpi), rho)); });
    }
    product(block.rows, size, block.keys, head.scale, Left<T>{dp, stride, 1}, by_rows(k, size), false,
            g.dq + block.begin * head.q_stride, head.q_stride);
    product(block.keys, size, block.rows, head.scale, Left<T>{dp, 1, stride}, by_rows(q, size), true, dk, size);
  });
  add_rows(n, size, dk, g.dk, head.kv_stride);
  add_rows(n, size, dv, g.dv, head.kv_stride);
}

template <typename T>
void double_backward(const AttentionHead<T>& head, const AttentionDoubleBackward<T>& g) {
  const hn::ScalableTag<T> d;
  const int64_t stride = spread_stride(head.key_length);
  const int64_t size = head.size;
  const int64_t packed = packed_size<T>(head.key_length, size);
  T* memory = scratch<T>(static_cast<size_t>(4 * packed + 4 * stride * kQueryBlock));
  const auto transposed_rows = [&](const T* rows, int64_t which) {
    return packed_columns(head.key_length, size, rows, head.kv_stride, memory + which * packed);
  };
  const Right<T> kt = transposed_rows(head.k, 0);
  const Right<T> vt = transposed_rows(head.v, 1);
  const Right<T> bt = transposed_rows(g.b, 2);
  const Right<T> ct = transposed_rows(g.c, 3);
  T* p = memory + 4 * packed;
  T* dp = p + stride * kQueryBlock;       // dP, then dS (G)
  T* gbar = dp + stride * kQueryBlock;    // Ḡ, then ddP
  T* pbar = gbar + stride * kQueryBlock;  // P̄, then S̄
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    const int64_t keys = block.keys;
    const Left<T> q{head.q + block.begin * head.q_stride, head.q_stride, 1};
    const Left<T> a{g.a + block.begin * head.q_stride, head.q_stride, 1};
    const Left<T> dout{g.dout + block.begin * g.dout_stride, g.dout_stride, 1};
    T* q_bar = g.q_bar + block.begin * head.q_stride;
    T* ddout = g.ddout + block.begin * g.dout_stride;
    probabilities(head, block, kt, p);
    product(block.rows, keys, size, T{1}, dout, vt, false, dp, stride);
    product(block.rows, keys, size, head.scale, a, kt, false, gbar, stride);
    product(block.rows, keys, size, head.scale, q, bt, true, gbar, stride);
    product(block.rows, keys, size, T{1}, dout, ct, false, pbar, stride);
    for (int64_t i = 0; i < block.rows; ++i) {
      const T* pi = p + i * stride;
      T* dpi = dp + i * stride;
      T* gi = gbar + i * stride;
      T* pbi = pbar + i * stride;
      const auto rho = hn::Set(d, row_dot(keys, pi, dpi));
      const auto u = hn::Set(d, row_dot(keys, pi, gi));
      map_to(keys, pbi, [&](auto load) HWY_ATTR {
        const auto direct = hn::MulAdd(load(gi), hn::Sub(load(dpi), rho), load(pbi));
        return hn::NegMulAdd(u, load(dpi), direct);
      });
      const auto sigma = hn::Set(d, row_dot(keys, pi, static_cast<const T*>(pbi)));
      map_to(keys, pbi, [&](auto load) HWY_ATTR { return hn::Mul(load(pi), hn::Sub(load(pbi), sigma)); });
      map_to(keys, gi, [&](auto load) HWY_ATTR { return hn::Mul(load(pi), hn::Sub(load(gi), u)); });
      map_to(keys, dpi, [&](auto load) HWY_ATTR { return hn::Mul(load(pi), hn::Sub(load(dpi), rho)); });
    }
    const Left<T> rows_p{p, stride, 1};
    const Left<T> rows_g{dp, stride, 1};
    const Left<T> rows_ddp{gbar, stride, 1};
    const Left<T> rows_s{pbar, stride, 1};
    const auto transposed = [](Left<T> m) { return Left<T>{m.data, m.column, m.row}; };
    product(block.rows, size, keys, T{1}, rows_p, by_rows(g.c, head.kv_stride), false, ddout, g.dout_stride);
    product(block.rows, size, keys, T{1}, rows_ddp, by_rows(head.v, head.kv_stride), true, ddout, g.dout_stride);
    product(block.rows, size, keys, head.scale, rows_g, by_rows(g.b, head.kv_stride), false, q_bar, head.q_stride);
    product(block.rows, size, keys, head.scale, rows_s, by_rows(head.k, head.kv_stride), true, q_bar, head.q_stride);
    product(keys, size, block.rows, head.scale, transposed(rows_g), by_rows(a.data, a.row), true, g.k_bar,
            head.kv_stride);
    product(keys, size, block.rows, head.scale, transposed(rows_s), by_rows(q.data, q.row), true, g.k_bar,
            head.kv_stride);
    product(keys, size, block.rows, T{1}, transposed(rows_ddp), by_rows(dout.data, dout.row), true, g.v_bar,
            head.kv_stride);
  });
}

PLUMB_FILL_TABLE(AttentionKernels, .forward = forward<T>, .cached = cached<T>, .backward = backward<T>,
                 .double_backward = double_backward<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(AttentionKernels, attention);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
