#include "plumb/ops/blocks.h"

#include <algorithm>
#include <numeric>

#include "plumb/ops/index.h"

namespace plumb::ops {

Blocks::Blocks(const Ragged& layout, int64_t size) : size_(size), tokens_(layout.tokens()) {
  const auto blocks_of = [&](int64_t s) { return (layout.length(s) + size - 1) / size; };
  order_.resize(static_cast<size_t>(layout.sequences()));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return blocks_of(a) > blocks_of(b); });
  const int64_t most = order_.empty() ? 0 : blocks_of(order_.front());
  std::vector<int64_t> begin;  // [block number]: the first block of that number
  for (int64_t number = 0; number < most; ++number) {
    const auto end = std::find_if(order_.begin(), order_.end(), [&](int64_t s) { return blocks_of(s) <= number; });
    begin.push_back(count_);
    sequences_at_.push_back(end - order_.begin());
    count_ += sequences_at_.back();
  }
  place_.resize(static_cast<size_t>(tokens_));
  for (size_t rank = 0; rank < order_.size(); ++rank) {
    const int64_t s = order_[rank];
    for (int64_t p = 0; p < layout.length(s); ++p) {
      const int64_t block = begin[static_cast<size_t>(p / size)] + static_cast<int64_t>(rank);
      place_[static_cast<size_t>(layout.begin(s) + p)] = block * size + p % size;
    }
  }
  whole_ = count_ * size == tokens_;
  for (size_t i = 0; i < place_.size() && whole_; ++i) whole_ = place_[i] == static_cast<int64_t>(i);
}

Tensor Blocks::cut(const Tensor& x, double padding) const {
  const int64_t heads = x.size(1);
  const int64_t width = x.size(2);
  const Tensor rows =
      whole_ ? x
             : at::full({count_ * size_, heads, width}, padding, x.options()).index_copy(0, index_beside(x, place_), x);
  return rows.reshape({count_, size_, heads, width}).transpose(1, 2).reshape({count_ * heads, size_, width});
}

Tensor Blocks::join(const Tensor& blocks, int64_t heads) const {
  const int64_t width = blocks.size(2);
  const Tensor rows =
      blocks.view({count_, heads, size_, width}).transpose(1, 2).reshape({count_ * size_, heads, width});
  return whole_ ? rows : rows.index_select(0, index_beside(blocks, place_));
}

Tensor Blocks::sorted(const Tensor& by_sequence) const {
  return sequences() == 1 ? by_sequence : by_sequence.index_select(0, index_beside(by_sequence, order_));
}

Tensor Blocks::unsorted(const Tensor& by_rank) const {
  if (sequences() == 1) return by_rank;
  std::vector<int64_t> rank(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) rank[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
  return by_rank.index_select(0, index_beside(by_rank, rank));
}

std::vector<Tensor> Blocks::by_number(const Tensor& x, int64_t each) const {
  std::vector<int64_t> rows;
  for (const int64_t sequences : sequences_at_) rows.push_back(sequences * each);
  return rows.empty() ? std::vector<Tensor>() : x.split_with_sizes(rows, 0);
}

Tensor Blocks::of_sequences(const Tensor& by_sequence) const {
  const Tensor by_rank = sorted(by_sequence);
  std::vector<Tensor> by_block;
  for (const int64_t sequences : sequences_at_) by_block.push_back(by_rank.narrow(0, 0, sequences));
  const Tensor all = by_block.size() == 1 ? by_block.front() : at::cat(by_block, 0);
  return all.reshape({all.size(0) * all.size(1), all.size(2), all.size(3)});
}

const Tensor& RunningStates::first(int64_t rows) {
  if (rows < states_.size(0)) {
    ended_.push_back(states_.narrow(0, rows, states_.size(0) - rows));
    states_ = states_.narrow(0, 0, rows);
  }
  return states_;
}

Tensor RunningStates::last() const {
  std::vector<Tensor> parts{states_};
  parts.insert(parts.end(), ended_.rbegin(), ended_.rend());
  return at::cat(parts, 0);
}

int64_t block_size(const Ragged& layout, int64_t features) {
  const int64_t wanted = features > 128 ? 128 : 64;
  const int64_t rounded = (layout.longest() + 7) / 8 * 8;
  return std::clamp<int64_t>(rounded, 8, wanted);
}

}  // namespace plumb::ops
