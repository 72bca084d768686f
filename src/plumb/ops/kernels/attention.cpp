#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/attention.cpp"
#include "plumb/ops/kernels/attention.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/simd-inl.h"

#include <algorithm>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// A matrix as the left factor of a product: element (i, k) at data[i·row + k·column]; transposing swaps the strides.
template <typename T>
struct Left {
  const T* data;
  int64_t row;
  int64_t column;
};

/// c[i, j] = (add ? c[i, j] : 0) + alpha · Σ_k a(i, k)·b[k, j] for kRows rows and kVectors vectors of columns from
/// column j.
template <int kRows, int kVectors, typename T>
HWY_INLINE void tile(int64_t n, int64_t depth, T alpha, Left<T> a, const T* HWY_RESTRICT b, int64_t ldb, bool add,
                     T* HWY_RESTRICT c, int64_t ldc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
  const bool whole = n >= kVectors * lanes;
  const int64_t last = whole ? lanes : n - (kVectors - 1) * lanes;  // elements in the last vector
  const auto mask = hn::FirstN(d, static_cast<size_t>(last));
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      const T* p = b + k * ldb + j * lanes;
      right[j] = whole || j + 1 < kVectors ? hn::LoadU(d, p) : load_first(d, mask, last, p);
    }
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a.data[i * a.row + k * a.column]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  const V factor = hn::Set(d, alpha);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      T* p = c + i * ldc + j * lanes;
      if (whole || j + 1 < kVectors) {
        hn::StoreU(add ? hn::MulAdd(factor, sum[i][j], hn::LoadU(d, p)) : hn::Mul(factor, sum[i][j]), d, p);
      } else {
        store_first(add ? hn::MulAdd(factor, sum[i][j], load_first(d, mask, last, p)) : hn::Mul(factor, sum[i][j]), d,
                    mask, last, p);
      }
    }
  }
}

/// c (m, n) = [c +] alpha · a (m, depth) · b (depth, n): register tiles of 6 by 2 vectors; for matrices of a few dozen
/// rows.
template <typename T>
void product(int64_t m, int64_t n, int64_t depth, T alpha, Left<T> a, const T* b, int64_t ldb, bool add, T* c,
             int64_t ldc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < n;) {
    const int64_t columns = std::min(n - j, 2 * lanes);
    const bool two = columns > lanes;
    for (int64_t i = 0; i < m;) {
      const Left<T> left{a.data + i * a.row, a.row, a.column};
      T* out = c + i * ldc + j;
      if (m - i >= 6) {
        two ? tile<6, 2>(columns, depth, alpha, left, b + j, ldb, add, out, ldc)
            : tile<6, 1>(columns, depth, alpha, left, b + j, ldb, add, out, ldc);
        i += 6;
      } else if (m - i >= 3) {
        two ? tile<3, 2>(columns, depth, alpha, left, b + j, ldb, add, out, ldc)
            : tile<3, 1>(columns, depth, alpha, left, b + j, ldb, add, out, ldc);
        i += 3;
      } else {
        two ? tile<1, 2>(columns, depth, alpha, left, b + j, ldb, add, out, ldc)
            : tile<1, 1>(columns, depth, alpha, left, b + j, ldb, add, out, ldc);
        i += 1;
      }
    }
    j += columns;
  }
}

/// out (columns, rows), row stride `rows`, from in (rows, columns), row stride `stride`.
template <typename T>
void transpose(int64_t rows, int64_t columns, const T* in, int64_t stride, T* HWY_RESTRICT out) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) out[c * rows + r] = in[r * stride + c];
  }
}

/// In place: scores become probabilities; only the first `keys` of each row of `width` count, and the rest become 0.
template <typename T>
void softmax_row(T* row, int64_t keys, int64_t width) {
  const hn::ScalableTag<T> d;
  const auto largest = hn::Set(d, reduce_max(keys, row));
  map_to(keys, row, [&](auto load) HWY_ATTR { return exponential(d, hn::Sub(load(row), largest)); });
  const auto inverse = hn::Set(d, T{1} / reduce_sum<T>(keys, [&](auto load) HWY_ATTR { return load(row); }));
  map_to(keys, row, [&](auto load) HWY_ATTR { return hn::Mul(load(row), inverse); });
  std::fill(row + keys, row + width, T{0});
}

template <typename T>
T row_dot(int64_t n, const T* x, const T* y) {
  return reduce_sum<T>(n, [&](auto load) HWY_ATTR { return hn::Mul(load(x), load(y)); });
}

constexpr int64_t kQueryBlock = 48;

/// A block of query rows [begin, begin + rows) and the keys that any of them sees.
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

/// P of one block: (rows, keys), row stride key_length. kt: k transposed, (size, key_length).
template <typename T>
void probabilities(const AttentionHead<T>& head, const Block<T>& block, const T* kt, T* p) {
  const int64_t n = head.key_length;
  product(block.rows, block.keys, head.size, head.scale,
          Left<T>{head.q + block.begin * head.q_stride, head.q_stride, 1}, kt, n, false, p, n);
  for (int64_t i = 0; i < block.rows; ++i) {
    softmax_row(p + i * n, head.causal ? std::min(block.begin + i + 1, block.keys) : block.keys, block.keys);
  }
}

/// Memory that a thread keeps between calls.
template <typename T>
T* scratch(size_t count) {
  static thread_local std::vector<T> buffer;
  if (buffer.size() < count) buffer.resize(count);
  return buffer.data();
}

/// out[0, kVectors · lanes) or, for one vector, out[0, n) = Σ_i p[i] · value(i).
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

/// p[i] = scale · q·key(i) for four keys: q is read once for all of them, and their sums hide each other's latency.
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

/// One query by dot products: for few queries, which do not justify transposing the keys.
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
  T* kt = scratch<T>(static_cast<size_t>(n * (head.size + kQueryBlock)));
  T* p = kt + n * head.size;
  transpose(n, head.size, head.k, head.kv_stride, kt);
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    probabilities(head, block, kt, p);
    product(block.rows, head.size, block.keys, T{1}, Left<T>{p, n, 1}, head.v, head.kv_stride, false,
            out + block.begin * out_stride, out_stride);
  });
}

template <typename T>
void backward(const AttentionHead<T>& head, const AttentionBackward<T>& g) {
  const hn::ScalableTag<T> d;
  const int64_t n = head.key_length;
  const int64_t size = head.size;
  T* kt = scratch<T>(static_cast<size_t>(n * (2 * size + 2 * kQueryBlock)));
  T* vt = kt + n * size;
  T* p = vt + n * size;
  T* dp = p + n * kQueryBlock;
  transpose(n, size, head.k, head.kv_stride, kt);
  transpose(n, size, head.v, head.kv_stride, vt);
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    const T* q = head.q + block.begin * head.q_stride;
    const T* dout = g.dout + block.begin * g.dout_stride;
    probabilities(head, block, kt, p);
    product(block.keys, size, block.rows, T{1}, Left<T>{p, 1, n}, dout, g.dout_stride, true, g.dv, head.kv_stride);
    product(block.rows, block.keys, size, T{1}, Left<T>{dout, g.dout_stride, 1}, vt, n, false, dp, n);
    for (int64_t i = 0; i < block.rows; ++i) {
      const T* pi = p + i * n;
      T* dpi = dp + i * n;
      const auto rho = hn::Set(d, row_dot(block.keys, pi, dpi));
      map_to(block.keys, dpi, [&](auto load) HWY_ATTR { return hn::Mul(load(pi), hn::Sub(load(dpi), rho)); });
    }
    product(block.rows, size, block.keys, head.scale, Left<T>{dp, n, 1}, head.k, head.kv_stride, false,
            g.dq + block.begin * head.q_stride, head.q_stride);
    product(block.keys, size, block.rows, head.scale, Left<T>{dp, 1, n}, q, head.q_stride, true, g.dk, head.kv_stride);
  });
}

template <typename T>
void double_backward(const AttentionHead<T>& head, const AttentionDoubleBackward<T>& g) {
  const hn::ScalableTag<T> d;
  const int64_t n = head.key_length;
  const int64_t size = head.size;
  T* kt = scratch<T>(static_cast<size_t>(n * (4 * size + 4 * kQueryBlock)));
  T* vt = kt + n * size;
  T* bt = vt + n * size;
  T* ct = bt + n * size;
  T* p = ct + n * size;
  T* dp = p + n * kQueryBlock;       // dP, then dS (G), then S̄
  T* gbar = dp + n * kQueryBlock;    // Ḡ, then ddP
  T* pbar = gbar + n * kQueryBlock;  // P̄, then S̄
  transpose(n, size, head.k, head.kv_stride, kt);
  transpose(n, size, head.v, head.kv_stride, vt);
  transpose(n, size, g.b, head.kv_stride, bt);
  transpose(n, size, g.c, head.kv_stride, ct);
  for_each_block(head, [&](const Block<T>& block) HWY_ATTR {
    const int64_t keys = block.keys;
    const Left<T> q{head.q + block.begin * head.q_stride, head.q_stride, 1};
    const Left<T> a{g.a + block.begin * head.q_stride, head.q_stride, 1};
    const Left<T> dout{g.dout + block.begin * g.dout_stride, g.dout_stride, 1};
    T* q_bar = g.q_bar + block.begin * head.q_stride;
    T* ddout = g.ddout + block.begin * g.dout_stride;
    probabilities(head, block, kt, p);
    product(block.rows, keys, size, T{1}, dout, vt, n, false, dp, n);
    product(block.rows, keys, size, head.scale, a, kt, n, false, gbar, n);
    product(block.rows, keys, size, head.scale, q, bt, n, true, gbar, n);
    product(block.rows, keys, size, T{1}, dout, ct, n, false, pbar, n);
    for (int64_t i = 0; i < block.rows; ++i) {
      const T* pi = p + i * n;
      T* dpi = dp + i * n;
      T* gi = gbar + i * n;
      T* pbi = pbar + i * n;
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
    const Left<T> rows_p{p, n, 1};
    const Left<T> rows_g{dp, n, 1};
    const Left<T> rows_ddp{gbar, n, 1};
    const Left<T> rows_s{pbar, n, 1};
    const auto transposed = [](Left<T> m) { return Left<T>{m.data, m.column, m.row}; };
    product(block.rows, size, keys, T{1}, rows_p, g.c, head.kv_stride, false, ddout, g.dout_stride);
    product(block.rows, size, keys, T{1}, rows_ddp, head.v, head.kv_stride, true, ddout, g.dout_stride);
    product(block.rows, size, keys, head.scale, rows_g, g.b, head.kv_stride, false, q_bar, head.q_stride);
    product(block.rows, size, keys, head.scale, rows_s, head.k, head.kv_stride, true, q_bar, head.q_stride);
    product(keys, size, block.rows, head.scale, transposed(rows_g), a.data, a.row, true, g.k_bar, head.kv_stride);
    product(keys, size, block.rows, head.scale, transposed(rows_s), q.data, q.row, true, g.k_bar, head.kv_stride);
    product(keys, size, block.rows, T{1}, transposed(rows_ddp), dout.data, dout.row, true, g.v_bar, head.kv_stride);
  });
}

void forward_f32(const AttentionHead<float>& head, float* out, int64_t stride) { forward(head, out, stride); }
void forward_f64(const AttentionHead<double>& head, double* out, int64_t stride) { forward(head, out, stride); }
void cached_f32(const CachedHead<float>& head, float* out) { cached(head, out); }
void cached_f64(const CachedHead<double>& head, double* out) { cached(head, out); }
void backward_f32(const AttentionHead<float>& head, const AttentionBackward<float>& g) { backward(head, g); }
void backward_f64(const AttentionHead<double>& head, const AttentionBackward<double>& g) { backward(head, g); }
void double_backward_f32(const AttentionHead<float>& head, const AttentionDoubleBackward<float>& g) {
  double_backward(head, g);
}
void double_backward_f64(const AttentionHead<double>& head, const AttentionDoubleBackward<double>& g) {
  double_backward(head, g);
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
HWY_EXPORT(cached_f32);
HWY_EXPORT(cached_f64);
HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_f64);
HWY_EXPORT(double_backward_f32);
HWY_EXPORT(double_backward_f64);

template <>
void attention_forward(const AttentionHead<float>& head, float* out, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(head, out, stride);
}
template <>
void attention_forward(const AttentionHead<double>& head, double* out, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(head, out, stride);
}
template <>
void cached_attention(const CachedHead<float>& head, float* out) {
  HWY_DYNAMIC_DISPATCH(cached_f32)(head, out);
}
template <>
void cached_attention(const CachedHead<double>& head, double* out) {
  HWY_DYNAMIC_DISPATCH(cached_f64)(head, out);
}
template <>
void attention_backward(const AttentionHead<float>& head, const AttentionBackward<float>& g) {
  HWY_DYNAMIC_DISPATCH(backward_f32)(head, g);
}
template <>
void attention_backward(const AttentionHead<double>& head, const AttentionBackward<double>& g) {
  HWY_DYNAMIC_DISPATCH(backward_f64)(head, g);
}
template <>
void attention_double_backward(const AttentionHead<float>& head, const AttentionDoubleBackward<float>& g) {
  HWY_DYNAMIC_DISPATCH(double_backward_f32)(head, g);
}
template <>
void attention_double_backward(const AttentionHead<double>& head, const AttentionDoubleBackward<double>& g) {
  HWY_DYNAMIC_DISPATCH(double_backward_f64)(head, g);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
