// Products with `distance` use its rows in decreasing order of d: then the rows for a query's keys are adjacent, and
// start one row earlier for each further query. A block of scores is therefore viewed in two ways: as (queries, keys),
// and slanted, with a row stride larger by one, where each column is multiplied by the same row of distances.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/relative_attention.cpp"
#include "plumb/ops/kernels/relative_attention.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/ops/kernels/tile-inl.h"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

// Queries per block, and keys that stay in the cache while blocks of queries are processed.
constexpr int64_t kQueryRows = 64;
constexpr int64_t kKeyRows = 256;
static_assert(kQueryRows % (2 * hn::MaxLanes(hn::ScalableTag<float>())) == 0, "distances begin where a strip does");

/// Hands out parts of a thread's memory, one after another.
class Memory {
 public:
  explicit Memory(int64_t count) : next_(scratch<float>(static_cast<size_t>(count))) {}
  float* take(int64_t count) {
    float* part = next_;
    next_ += count;
    return part;
  }
  float* zeros(int64_t count) {
    float* part = take(count);
    std::fill_n(part, count, 0.0F);
    return part;
  }

 private:
  float* next_;
};

/// A contiguous copy of all rows.
float* dense(Memory& memory, int64_t rows, int64_t size, const RowsOf<const float>& from) {
  float* copy = memory.take(rows * size);
  copy_rows(rows, size, from.data, from.stride, copy);
  return copy;
}

Right<float> packed(Memory& memory, int64_t columns, int64_t size, const float* rows, int64_t stride) {
  return packed_columns(columns, size, rows, stride, memory.take(packed_size<float>(columns, size)));
}

/// `distance` in decreasing order: row count − 1 − d for distance d, where `count` is a multiple of kQueryRows, so that
/// the rows for a block start with a strip. Distances beyond the sequence have rows of zeros.
struct FallingDistances {
  int64_t count;
  float* rows;  // (count, size)
  Right<float> columns;

  static int64_t count_of(int64_t length) { return (length + kQueryRows - 1) / kQueryRows * kQueryRows; }
  static int64_t memory_size(int64_t length, int64_t size) {
    return count_of(length) * size + packed_size<float>(count_of(length), size);
  }
  FallingDistances(Memory& memory, const RelativeHead& head)
      : count(count_of(head.length)), rows(memory.zeros(count * head.size)) {
    for (int64_t d = 0; d < head.length; ++d)
      std::copy_n(head.distance.row(d), head.size, rows + (count - 1 - d) * head.size);
    columns = packed(memory, count, head.size, rows, head.size);
  }
  /// The columns from `first` on, a multiple of the strip width.
  [[nodiscard]] Right<float> from(int64_t first) const {
    return {columns.data + first / strip_columns<float>() * columns.strip, columns.row, columns.strip};
  }
};

/// Scores, or their gradients, of the queries [first, first + queries) and the keys [begin, begin + keys).
struct ScoreBlock {
  int64_t first, queries;
  int64_t begin, keys;
  float* data;
  int64_t stride;  // at least keys + kQueryRows − 1
  [[nodiscard]] float* row(int64_t i) const { return data + i * stride; }
  /// The number of keys that query i sees.
  [[nodiscard]] int64_t seen(int64_t i) const { return std::clamp<int64_t>(first + i + 1 - begin, 0, keys); }

  // Slanted: the score of query i and key j is element (i, kQueryRows − 1 − i + j − left_out()), and column c uses row
  // farthest(distances) + c of `distances`. Excluded are strips before the first column that no query reaches, and keys
  // after all queries.
  [[nodiscard]] int64_t left_out() const {
    return (kQueryRows - queries) / strip_columns<float>() * strip_columns<float>();
  }
  [[nodiscard]] float* slanted() const { return data - (kQueryRows - 1) + left_out(); }
  [[nodiscard]] int64_t slanted_stride() const { return stride + 1; }
  [[nodiscard]] int64_t slanted_columns() const { return std::min(keys - 1, first - begin) + kQueryRows - left_out(); }
  [[nodiscard]] int64_t farthest(const FallingDistances& distances) const {
    return distances.count - first - kQueryRows + begin + left_out();
  }
};

/// Memory for blocks with up to `rows` queries. Slanted rows extend beyond the keys on both sides.
int64_t score_memory_size(int64_t rows, int64_t stride) { return kQueryRows + rows * stride; }
float* score_memory(Memory& memory, int64_t rows, int64_t stride) {
  float* part = memory.take(score_memory_size(rows, stride));
  std::fill_n(part, kQueryRows, 0.0F);
  return part + kQueryRows;
}

/// content·keyᵀ + position·distance, without the scale. Also adds to elements beside the rows of `block`.
void unscaled_scores(const RelativeHead& head, const ScoreBlock& block, const float* content, const float* position,
                     Right<float> keys, const FallingDistances& distances) {
  product(block.queries, block.keys, head.size, 1.0F, Left<float>{content, head.size, 1}, keys, false, block.data,
          block.stride);
  product(block.queries, block.slanted_columns(), head.size, 1.0F, Left<float>{position, head.size, 1},
          distances.from(block.farthest(distances)), true, block.slanted(), block.slanted_stride());
}

/// Replaces unscaled scores by exp(scale·(score − the row's maximum)), and by 0 for keys not seen. Writes the row sums
/// and their log_sums, log Σ_j exp(scale·score).
void exponentials(const ScoreBlock& block, float scale, float* sums, float* log_sums) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < block.queries; ++i) {
    float* row = block.row(i);
    const int64_t seen = block.seen(i);
    const float top = reduce_max(seen, row);
    const auto largest = hn::Set(d, top);
    sums[i] = map_and_sum(
        seen, row, [&](auto load) HWY_ATTR { return exponential(d, hn::Mul(factor, hn::Sub(load(row), largest))); });
    log_sums[i] = scale * top + std::log(sums[i]);
    std::fill(row + seen, row + block.keys, 0.0F);
  }
}

/// Replaces unscaled scores by probabilities P and, in `slope`, dP by the gradients of the unscaled scores,
/// scale·P∘(dP − mean), with 0 for keys not seen and beside the keys, where slanted rows reach. means: rowsum(P∘dP).
void differentiate(const ScoreBlock& weight, const ScoreBlock& slope, float scale, const float* log_sums,
                   const float* means) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < weight.queries; ++i) {
    float* p = weight.row(i);
    float* ds = slope.row(i);
    const int64_t seen = weight.seen(i);
    const auto log_sum = hn::Set(d, log_sums[i]);
    const auto mean = hn::Set(d, means[i]);
    map_to(seen, p, [&](auto load) HWY_ATTR { return exponential(d, hn::MulSub(factor, load(p), log_sum)); });
    map_to(seen, ds, [&](auto load) HWY_ATTR { return hn::Mul(hn::Mul(factor, load(p)), hn::Sub(load(ds), mean)); });
    std::fill(p + seen, p + weight.keys, 0.0F);
    std::fill(ds + seen, ds + slope.stride, 0.0F);
  }
}

void relative_forward(const RelativeHead& head, const RowsOf<float>& out, float* log_sums) {
  const hn::ScalableTag<float> d;
  const int64_t n = head.length;
  const int64_t size = head.size;
  const int64_t score_rows = std::min(kQueryRows, n);
  const int64_t score_stride = spread_stride(n + kQueryRows);
  Memory memory(FallingDistances::memory_size(n, size) + packed_size<float>(n, size) + n * size +
                2 * kQueryRows * size + score_memory_size(score_rows, score_stride));
  const FallingDistances distances(memory, head);
  const Right<float> keys = packed(memory, n, size, head.key.data, head.key.stride);
  const float* values = dense(memory, n, size, head.value);
  float* content = memory.take(kQueryRows * size);
  float* position = memory.take(kQueryRows * size);
  float* scores = score_memory(memory, score_rows, score_stride);
  for (int64_t first = 0; first < n; first += kQueryRows) {
    const int64_t queries = std::min(kQueryRows, n - first);
    const ScoreBlock block{first, queries, 0, first + queries, scores, score_stride};
    copy_rows(queries, size, head.content.row(first), head.content.stride, content);
    copy_rows(queries, size, head.position.row(first), head.position.stride, position);
    unscaled_scores(head, block, content, position, keys, distances);
    float sums[kQueryRows];
    exponentials(block, head.scale, sums, log_sums + first);
    for (int64_t begin = 0; begin < block.keys; begin += kKeyRows) {
      product(queries, size, std::min(kKeyRows, block.keys - begin), 1.0F, Left<float>{scores + begin, score_stride, 1},
              by_rows(values + begin * size, size), begin > 0, out.row(first), out.stride);
    }
    for (int64_t i = 0; i < queries; ++i) {
      float* row = out.row(first + i);
      const auto share = hn::Set(d, 1 / sums[i]);
      map_to(size, row, [&](auto load) HWY_ATTR { return hn::Mul(load(row), share); });
    }
  }
}

void relative_backward(const RelativeHead& head, const RelativeBackward& g) {
  const int64_t n = head.length;
  const int64_t size = head.size;
  const int64_t score_rows = std::min(kQueryRows, n);
  const int64_t score_stride = spread_stride(std::min(kKeyRows, n) + kQueryRows);
  const int64_t packed_keys = packed_size<float>(kKeyRows, size);
  Memory memory(FallingDistances::memory_size(n, size) + FallingDistances::count_of(n) * size + 5 * n * size + n +
                2 * packed_keys + 3 * kKeyRows * size + 2 * score_memory_size(score_rows, score_stride));
  const FallingDistances distances(memory, head);
  float* dfalling = memory.zeros(distances.count * size);
  const float* content = dense(memory, n, size, head.content);
  const float* position = dense(memory, n, size, head.position);
  const float* cotangent = dense(memory, n, size, g.cotangent);
  float* dcontent = memory.zeros(n * size);
  float* dposition = memory.zeros(n * size);
  float* means = memory.take(n);  // Σ_j P_ij·dP_ij
  for (int64_t i = 0; i < n; ++i) {
    const float* out = g.out.row(i);
    means[i] =
        reduce_sum<float>(size, [&](auto load) HWY_ATTR { return hn::Mul(load(out), load(cotangent + i * size)); });
  }
  float* key_columns = memory.take(packed_keys);
  float* value_columns = memory.take(packed_keys);
  float* keys = memory.take(kKeyRows * size);
  float* dkeys = memory.take(kKeyRows * size);
  float* dvalues = memory.take(kKeyRows * size);
  float* weights = score_memory(memory, score_rows, score_stride);
  float* slopes = score_memory(memory, score_rows, score_stride);
  for (int64_t begin = 0; begin < n; begin += kKeyRows) {
    const int64_t held = std::min(kKeyRows, n - begin);
    const Right<float> key = packed_columns(held, size, head.key.row(begin), head.key.stride, key_columns);
    const Right<float> value = packed_columns(held, size, head.value.row(begin), head.value.stride, value_columns);
    copy_rows(held, size, head.key.row(begin), head.key.stride, keys);
    std::fill_n(dkeys, held * size, 0.0F);
    std::fill_n(dvalues, held * size, 0.0F);
    for (int64_t first = begin; first < n; first += kQueryRows) {
      const int64_t queries = std::min(kQueryRows, n - first);
      const int64_t seen_keys = std::min(held, first + queries - begin);
      const ScoreBlock weight{first, queries, begin, seen_keys, weights, score_stride};
      const ScoreBlock slope{first, queries, begin, seen_keys, slopes, score_stride};
      const float* query = content + first * size;
      const float* dout = cotangent + first * size;
      unscaled_scores(head, weight, query, position + first * size, key, distances);
      product(queries, seen_keys, size, 1.0F, Left<float>{dout, size, 1}, value, false, slopes, score_stride);
      differentiate(weight, slope, head.scale, g.log_sums + first, means + first);
      product(seen_keys, size, queries, 1.0F, Left<float>{weights, 1, score_stride}, by_rows(dout, size), true, dvalues,
              size);
      product(seen_keys, size, queries, 1.0F, Left<float>{slopes, 1, score_stride}, by_rows(query, size), true, dkeys,
              size);
      product(queries, size, seen_keys, 1.0F, Left<float>{slopes, score_stride, 1}, by_rows(keys, size), true,
              dcontent + first * size, size);
      const int64_t farthest = slope.farthest(distances) * size;
      const Left<float> slanted{slope.slanted(), slope.slanted_stride(), 1};
      product(queries, size, slope.slanted_columns(), 1.0F, slanted, by_rows(distances.rows + farthest, size), true,
              dposition + first * size, size);
      product(slope.slanted_columns(), size, queries, 1.0F, Left<float>{slanted.data, 1, slanted.row},
              by_rows(position + first * size, size), true, dfalling + farthest, size);
    }
    add_rows(held, size, dkeys, g.key.row(begin), g.key.stride);
    add_rows(held, size, dvalues, g.value.row(begin), g.value.stride);
  }
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(dcontent + i * size, size, g.content.row(i));
    std::copy_n(dposition + i * size, size, g.position.row(i));
    add_rows(1, size, dfalling + (distances.count - 1 - i) * size, g.distance.row(i), size);
  }
}

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

HWY_EXPORT(relative_forward);
HWY_EXPORT(relative_backward);

void relative_attention_forward(const RelativeHead& head, const RowsOf<float>& out, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(relative_forward)(head, out, log_sums);
}
void relative_attention_backward(const RelativeHead& head, const RelativeBackward& gradient) {
  HWY_DYNAMIC_DISPATCH(relative_backward)(head, gradient);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
