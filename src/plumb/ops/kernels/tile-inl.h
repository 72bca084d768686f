// Products of matrices with a few dozen rows or columns, as in attention, by tiles that stay in registers.
// Included once per instruction set, hence the unusual guard (see Highway's manual).
// clang-format off
#if defined(PLUMB_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_TILE_INL_H
#undef PLUMB_TILE_INL_H
#else
#define PLUMB_TILE_INL_H
#endif
// clang-format on

#include <algorithm>
#include <vector>

#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

/// A matrix as the left factor of a product: element (i, k) at data[i·row + k·column]; transposing swaps the strides.
template <typename T>
struct Left {
  const T* data;
  int64_t row;
  int64_t column;
};

/// The columns of a strip: two vectors.
template <typename T>
int64_t strip_columns() {
  return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

/// A matrix as the right factor, in strips of columns: strips are `strip` elements apart, rows of a strip `row`.
template <typename T>
struct Right {
  const T* data;
  int64_t row;
  int64_t strip;
};

/// A row-major matrix as the right factor.
template <typename T>
Right<T> by_rows(const T* data, int64_t stride) {
  return {data, stride, strip_columns<T>()};
}

/// The number of elements that packed_columns writes.
template <typename T>
int64_t packed_size(int64_t columns, int64_t depth) {
  return (columns + strip_columns<T>() - 1) / strip_columns<T>() * strip_columns<T>() * depth;
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
/// transpose_lanes() below needs vectors of whole blocks of 128 bits.
template <typename T>
inline constexpr int64_t kBlockLanes = 0;
template <typename T, typename Row>
void transpose_lanes(const Row& /*row*/, int64_t /*stride*/, T* /*out*/) {}
#else
/// Elements in a block of 128 bits.
template <typename T>
inline constexpr int64_t kBlockLanes = 16 / static_cast<int64_t>(sizeof(T));

/// A vector whose block b is the one at row(first + b·kBlockLanes).
template <typename D, typename Row>
HWY_INLINE hn::Vec<D> blocks_of_rows(D d, const Row& row, int64_t first) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) == kBlockLanes<T>) {
    return hn::LoadU(d, row(first));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, blocks_of_rows(half, row, first + hn::MaxLanes(half)), blocks_of_rows(half, row, first));
  }
}

/// out[c·stride + j] = row(j)[c] for the lanes j of a vector and the elements c of a block.
template <typename T, typename Row>
HWY_INLINE void transpose_lanes(const Row& row, int64_t stride, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto v0 = blocks_of_rows(d, row, 0), v1 = blocks_of_rows(d, row, 1);
  if constexpr (kBlockLanes<T> == 2) {
    hn::StoreU(hn::InterleaveLower(d, v0, v1), d, out);
    hn::StoreU(hn::InterleaveUpper(d, v0, v1), d, out + stride);
  } else {
    const hn::RepartitionToWide<decltype(d)> pairs;
    const auto v2 = blocks_of_rows(d, row, 2), v3 = blocks_of_rows(d, row, 3);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, v0, v1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, v2, v3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v0, v1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v2, v3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * stride);
  }
}
#endif

/// The transpose of `in` (columns, depth), row stride `stride`, as a right factor whose strips are contiguous, with
/// the last strip zero-padded.
template <typename T>
Right<T> packed_columns(int64_t columns, int64_t depth, const T* in, int64_t stride, T* HWY_RESTRICT out) {
  static constexpr T kZeros[16 / sizeof(T)] = {};
  const int64_t width = strip_columns<T>();
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t first = 0; first < columns; first += width) {
    T* strip = out + first * depth;
    int64_t k = 0;
    constexpr int64_t kBlock = kBlockLanes<T>;
    if constexpr (kBlock != 0) {
      for (; k + kBlock <= depth; k += kBlock) {
        for (int64_t j = 0; j < width; j += lanes) {
          const auto row = [&](int64_t i) {
            return first + j + i < columns ? in + (first + j + i) * stride + k : kZeros;
          };
          transpose_lanes(row, width, strip + k * width + j);
        }
      }
    }
    for (; k < depth; ++k) {
      for (int64_t j = 0; j < width; ++j) {
        strip[k * width + j] = first + j < columns ? in[(first + j) * stride + k] : T{0};
      }
    }
  }
  return {out, width, width * depth};
}

/// c[i, j] = (add ? c[i, j] : 0) + alpha · Σ_k a(i, k)·b[k, j] for kRows rows and `n` columns, held in kVectors
/// vectors; kWhole: the last vector is full.
template <int kRows, int kVectors, bool kWhole, typename T>
HWY_INLINE void tile(int64_t n, int64_t depth, T alpha, Left<T> a, const T* HWY_RESTRICT b, int64_t ldb, bool add,
                     T* HWY_RESTRICT c, int64_t ldc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
  const int64_t last = n - (kVectors - 1) * lanes;  // elements in the last vector
  const auto mask = hn::FirstN(d, static_cast<size_t>(last));
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      const T* p = b + k * ldb + j * lanes;
      right[j] = kWhole || j + 1 < kVectors ? hn::LoadU(d, p) : load_first(d, mask, last, p);
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
      if (kWhole || j + 1 < kVectors) {
        hn::StoreU(add ? hn::MulAdd(factor, sum[i][j], hn::LoadU(d, p)) : hn::Mul(factor, sum[i][j]), d, p);
      } else {
        store_first(add ? hn::MulAdd(factor, sum[i][j], load_first(d, mask, last, p)) : hn::Mul(factor, sum[i][j]), d,
                    mask, last, p);
      }
    }
  }
}

/// The operands of tile(), except the number of columns.
template <typename T>
struct Strip {
  int64_t m, depth;
  T alpha;
  Left<T> a;
  const T* b;
  int64_t ldb;
  bool add;
  T* c;
  int64_t ldc;
};

/// Covers the rows from `first` on with as many tiles of kRows as fit; returns the first row that is left.
template <int kRows, int kVectors, bool kWhole, typename T>
HWY_INLINE int64_t tiles(const Strip<T>& s, int64_t columns, int64_t first) {
  for (; first + kRows <= s.m; first += kRows) {
    tile<kRows, kVectors, kWhole>(columns, s.depth, s.alpha, Left<T>{s.a.data + first * s.a.row, s.a.row, s.a.column},
                                  s.b, s.ldb, s.add, s.c + first * s.ldc, s.ldc);
  }
  return first;
}

template <int kVectors, bool kWhole, typename T>
void strip(const Strip<T>& s, int64_t columns) {
  // As many sums as fit into the registers: AVX-512 has 32, AVX2 16.
  constexpr int kMost = HWY_TARGET <= HWY_AVX3 ? 8 : 6;
  int64_t row = tiles<kMost, kVectors, kWhole>(s, columns, 0);
  row = tiles<3, kVectors, kWhole>(s, columns, row);
  tiles<1, kVectors, kWhole>(s, columns, row);
}

/// c (m, n) = [c +] alpha · a (m, depth) · b (depth, n), in strips of two vectors of columns.
template <typename T>
void product(int64_t m, int64_t n, int64_t depth, T alpha, Left<T> a, Right<T> b, bool add, T* c, int64_t ldc) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const T* columns_of = b.data;
  for (int64_t j = 0; j < n; j += 2 * lanes, columns_of += b.strip) {
    const int64_t columns = std::min(n - j, 2 * lanes);
    const Strip<T> part{m, depth, alpha, a, columns_of, b.row, add, c + j, ldc};
    if (columns == 2 * lanes) {
      strip<2, true>(part, columns);
    } else if (columns > lanes) {
      strip<2, false>(part, columns);
    } else {
      columns == lanes ? strip<1, true>(part, columns) : strip<1, false>(part, columns);
    }
  }
}

/// Copies the rows of a matrix into contiguous memory.
template <typename T>
void copy_rows(int64_t rows, int64_t columns, const T* from, int64_t stride, T* out) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * stride, columns, out + i * columns);
}

/// to += from, where the rows of `from` are contiguous and those of `to` are `stride` apart.
template <typename T>
void add_rows(int64_t rows, int64_t columns, const T* from, T* to, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    T* row = to + i * stride;
    map_to(columns, row, [&](auto load) HWY_ATTR { return hn::Add(load(row), load(from + i * columns)); });
  }
}

/// A row stride of at least n elements, an odd multiple of 16: rows that are a power of two apart would evict each
/// other from the cache.
inline int64_t spread_stride(int64_t n) { return (n + 15) / 16 * 16 | 16; }

/// Per-thread memory, uninitialized and reused: each call invalidates the memory of the previous call with the same T.
template <typename T>
T* scratch(size_t count) {
  static thread_local std::vector<T> buffer;
  if (buffer.size() < count) {
    buffer = {};  // nothing to copy
    buffer.resize(count);
  }
  return buffer.data();
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PLUMB_TILE_INL_H
