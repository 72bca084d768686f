#include "plumb/nn/attention/row_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {

void RowKeys::append(const Tensor& key_value, const Ragged& layout) {
  if (std::ssize(rows_) != layout.sequences()) {
    throw Error(fmt::format("cannot append positions of {} sequences to {} rows", layout.sequences(), rows_.size()));
  }
  constexpr int64_t kSpare = 64;  // positions, at least
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    const int64_t count = layout.length(r);
    if (count == 0) continue;
    Row& row = rows_[static_cast<size_t>(r)];
    if (row.shared || !row.held.defined() || row.length + count > row.held.size(0)) {
      const int64_t needed = row.length + count;
      const Tensor larger = at::empty({needed + std::max(kSpare, needed / 4), key_value.size(1)}, key_value.options());
      if (row.length > 0) larger.narrow(0, 0, row.length).copy_(row.held.narrow(0, 0, row.length));
      row.held = larger;
      row.shared = false;
    }
    row.held.narrow(0, row.length, count).copy_(key_value.narrow(0, layout.begin(r), count));
    row.length += count;
  }
}

void RowKeys::reorder(const std::vector<int64_t>& order) {
  std::vector<int64_t> uses(rows_.size(), 0);
  for (const int64_t r : order) ++uses.at(static_cast<size_t>(r));
  std::vector<Row> moved;
  moved.reserve(order.size());
  for (const int64_t r : order) {
    moved.push_back(rows_[static_cast<size_t>(r)]);
    moved.back().shared = moved.back().shared || uses[static_cast<size_t>(r)] > 1;
  }
  rows_ = std::move(moved);
}

Tensor RowKeys::row(int64_t r) const {
  const Row& row = rows_.at(static_cast<size_t>(r));
  return row.held.narrow(0, 0, row.length);
}

int64_t RowKeys::bytes() const {
  int64_t total = 0;
  for (const Row& row : rows_) total += row.held.defined() ? static_cast<int64_t>(row.held.nbytes()) : 0;
  return total;
}

}  // namespace plumb
