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
  constexpr int64_t kLeast = 64;  // positions
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    const int64_t count = layout.length(r);
    if (count == 0) continue;
    Row& row = rows_[static_cast<size_t>(r)];
    if (!row.held.defined() || row.length + count > row.held.size(0)) {
      const int64_t capacity = std::max({kLeast, 2 * row.length, row.length + count});
      const Tensor larger = at::empty({capacity, key_value.size(1)}, key_value.options());
      if (row.length > 0) larger.narrow(0, 0, row.length).copy_(row.held.narrow(0, 0, row.length));
      row.held = larger;
    }
    row.held.narrow(0, row.length, count).copy_(key_value.narrow(0, layout.begin(r), count));
    row.length += count;
  }
}

void RowKeys::reorder(const std::vector<int64_t>& order) {
  std::vector<Row> moved;
  moved.reserve(order.size());
  std::vector<bool> taken(rows_.size(), false);
  for (const int64_t r : order) {
    Row row = rows_.at(static_cast<size_t>(r));
    if (taken[static_cast<size_t>(r)] && row.held.defined()) row.held = row.held.clone();
    taken[static_cast<size_t>(r)] = true;
    moved.push_back(std::move(row));
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
