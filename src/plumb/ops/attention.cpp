#include "plumb/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/index.h"

namespace plumb::ops {

void check_shape(const HeadShape& shape) {
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    throw Error(fmt::format("{} heads cannot share {} key-value heads", shape.heads, shape.kv_heads),
                "the number of key-value heads must divide the number of heads");
  }
}

namespace {

/// Whether LibTorch's fused attention accepts these heads and layouts: float32, sizes that are multiples of 8 up to
/// 256, and no empty sequence.
bool fits_gpu(const Tensor& query, const HeadShape& shape, const Ragged& queries, const Ragged& keys) {
  constexpr int64_t kAligned = 8, kLargest = 256;
  const auto any_empty = [](const Ragged& layout) {
    for (int64_t s = 0; s < layout.sequences(); ++s) {
      if (layout.length(s) == 0) return true;
    }
    return layout.sequences() == 0;
  };
  return gpu_serves(query) && query.scalar_type() == at::kFloat && shape.size % kAligned == 0 &&
         shape.size <= kLargest && !any_empty(queries) && !any_empty(keys);
}

void check_rows(const Tensor& x, const Ragged& layout) {
  if (x.size(0) != layout.tokens())
    throw Error(fmt::format("attention over {} tokens got {} rows", layout.tokens(), x.size(0)));
}

void check_columns(const Tensor& x, int64_t columns, const HeadShape& shape) {
  if (x.size(1) != columns) {
    throw Error(fmt::format("attention with {} heads and {} key-value heads of size {} got {} columns instead of {}",
                            shape.heads, shape.kv_heads, shape.size, x.size(1), columns));
  }
}

}  // namespace

Tensor self_attention(const Tensor& packed, const Ragged& layout, const HeadShape& shape, bool causal) {
  check_shape(shape);
  check_columns(packed, shape.width() + 2 * shape.kv_width(), shape);
  check_rows(packed, layout);
  static constexpr Operation kSelfAttention("attention", PLUMB_FUSED(self_attention), &reference::self_attention,
                                            PLUMB_GPU(self_attention));
  return kSelfAttention(path_of(packed, fits_gpu(packed, shape, layout, layout)), packed, layout, shape, causal);
}

Tensor cross_attention(const Tensor& query, const Tensor& packed, const Ragged& query_layout, const Ragged& key_layout,
                       const HeadShape& shape) {
  check_shape(shape);
  check_columns(query, shape.width(), shape);
  check_columns(packed, 2 * shape.kv_width(), shape);
  check_rows(query, query_layout);
  check_rows(packed, key_layout);
  require_one_device("attention", query, packed);
  if (query_layout.sequences() != key_layout.sequences()) {
    throw Error(fmt::format("{} sequences cannot attend to {}", query_layout.sequences(), key_layout.sequences()));
  }
  static constexpr Operation kCrossAttention("attention", PLUMB_FUSED(cross_attention), &reference::cross_attention,
                                             PLUMB_GPU(cross_attention));
  const Path path = path_of(query, fits_gpu(query, shape, query_layout, key_layout));
  return kCrossAttention(path, query, packed, query_layout, key_layout, shape);
}

void CachedKeys::append(const Tensor& key_value, const Ragged& layout) {
  check_rows(key_value, layout);
  if (rows.empty()) rows.resize(static_cast<size_t>(layout.sequences()));
  if (static_cast<int64_t>(rows.size()) != layout.sequences()) {
    throw Error(fmt::format("cannot append positions of {} sequences to {} rows", layout.sequences(), rows.size()));
  }
  const Tensor added = as_contiguous(key_value, "attention");
  make_room(added);
  const auto block = static_cast<int32_t>(blocks.size() - 1);
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    for (int64_t at = layout.begin(r); at < layout.begin(r + 1); ++at) {
      rows[static_cast<size_t>(r)].push_back({block, static_cast<int32_t>(filled + at)});
    }
  }
  if (!blocks.back().is_same(added)) blocks.back().narrow(0, filled, added.size(0)).copy_(added);
  filled += added.size(0);
}

void CachedKeys::make_room(const Tensor& key_value) {
  constexpr int64_t kBlock = 64;  // positions
  const int64_t count = key_value.size(0);
  if (!blocks.empty()) {
    const Tensor& last = blocks.back();
    const bool alike =
        last.size(1) == key_value.size(1) && last.dtype() == key_value.dtype() && last.device() == key_value.device();
    if (alike && filled + count <= last.size(0)) return;
  }
  // A large append becomes a block without a copy. Otherwise the size is a multiple of `count`, so that appends of the
  // same size leave no position unused.
  const int64_t size = count > 0 ? kBlock / count * count : kBlock;
  blocks.push_back(count >= kBlock ? key_value : at::empty({size, key_value.size(1)}, key_value.options()));
  filled = 0;
}

void CachedKeys::reorder(const std::vector<int64_t>& order) {
  std::vector<std::vector<Place>> moved;
  moved.reserve(order.size());
  for (const int64_t row : order) moved.push_back(rows.at(static_cast<size_t>(row)));
  rows = std::move(moved);
  free_unused();
}

void CachedKeys::free_unused() {
  constexpr int64_t kWorthwhile = 1024;  // positions
  int64_t size = 0;
  for (const Tensor& block : blocks) size += block.size(0);
  if (size < std::max(kWorthwhile, 2 * size_when_looked_)) return;
  size_when_looked_ = size;
  constexpr int32_t kUnused = -1, kUsed = 0;
  std::vector<std::vector<int32_t>> moved;  // [block][row]: whether it is in use, then its row in the new block
  for (const Tensor& block : blocks) moved.emplace_back(static_cast<size_t>(block.size(0)), kUnused);
  const auto moved_from = [&](const Place& place) -> int32_t& {
    return moved[static_cast<size_t>(place.block)][static_cast<size_t>(place.row)];
  };
  for (const std::vector<Place>& places : rows) {
    for (const Place& place : places) moved_from(place) = kUsed;
  }
  int32_t used = 0;
  std::vector<std::vector<int64_t>> sources(blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t row = 0; row < moved[b].size(); ++row) {
      if (moved[b][row] == kUnused) continue;
      moved[b][row] = used++;
      sources[b].push_back(static_cast<int64_t>(row));
    }
  }
  if (used == 0 || 2 * int64_t{used} > size) return;
  std::vector<Tensor> parts;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (!sources[b].empty()) parts.push_back(blocks[b].index_select(0, index_beside(blocks[b], sources[b])));
    blocks[b] = Tensor();
  }
  blocks = {at::cat(parts, 0)};
  for (std::vector<Place>& places : rows) {
    for (Place& place : places) place = {0, moved_from(place)};
  }
  filled = size_when_looked_ = used;
}

std::vector<Tensor> CachedKeys::by_row() const {
  std::vector<int64_t> begins{0};  // offset of each block in their concatenation
  for (const Tensor& block : blocks) begins.push_back(begins.back() + block.size(0));
  std::vector<int64_t> index, lengths;
  for (const std::vector<Place>& places : rows) {
    lengths.push_back(static_cast<int64_t>(places.size()));
    for (const Place& place : places) index.push_back(begins[static_cast<size_t>(place.block)] + place.row);
  }
  const Tensor all = at::cat(blocks, 0);
  return all.index_select(0, index_beside(all, index)).split_with_sizes(lengths, 0);
}

int64_t CachedKeys::bytes() const {
  int64_t total = 0;
  for (const Tensor& block : blocks) total += static_cast<int64_t>(block.nbytes());
  for (const std::vector<Place>& places : rows) total += static_cast<int64_t>(places.size() * sizeof(Place));
  return total;
}

Tensor cached_attention(const Tensor& query, const Ragged& layout, const CachedKeys& cache, const HeadShape& shape) {
  check_shape(shape);
  check_columns(query, shape.width(), shape);
  for (const Tensor& block : cache.blocks) {
    check_columns(block, 2 * shape.kv_width(), shape);
    require_one_device("attention", query, block);
  }
  const int64_t rows = layout.sequences();
  if (rows != static_cast<int64_t>(cache.rows.size()) || layout.tokens() != query.size(0)) {
    throw Error(
        fmt::format("{} queries in {} rows do not match {} cached rows", query.size(0), rows, cache.rows.size()));
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (layout.length(r) > cache.length(r)) throw Error("a row has fewer positions than were requested");
  }
  const at::NoGradGuard no_graph;
  static constexpr Operation kCachedAttention("attention to a cache", PLUMB_FUSED(cached_attention),
                                              &reference::cached_attention);
  return kCachedAttention(path_of(query), query, layout, cache, shape);
}

}  // namespace plumb::ops
