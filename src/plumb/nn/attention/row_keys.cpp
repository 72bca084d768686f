#include "plumb/nn/attention/row_keys.h"

#include <fmt/format.h>

#include <utility>

#include "plumb/base/error.h"

namespace plumb {

/// key_value: (positions, 2·kv_width)
void RowKeys::Row::append(const Tensor& key_value) {
  const int64_t count = key_value.size(0);
  if (count == 0) return;
  const int64_t needed = length + count;
  if (!own.defined() || needed > own.size(0)) {
    const Tensor larger = at::empty({needed + needed / 4, key_value.size(1)}, key_value.options());
    if (length > 0) larger.narrow(0, 0, length).copy_(own.narrow(0, 0, length));
    own = larger;
  }
  own.narrow(0, length, count).copy_(key_value);
  length = needed;
}

/// Makes the row shareable, before it is copied.
void RowKeys::Row::share() {
  if (length == 0) return;
  shared.push_back(own.narrow(0, 0, length));
  own = Tensor();
  length = 0;
  // Bounds the parts of a row that branches at every step.
  constexpr size_t kMostParts = 16;
  if (shared.size() >= kMostParts) shared = {at::cat(shared, 0)};
}

void RowKeys::append(const Tensor& key_value, const Ragged& layout) {
  if (std::ssize(rows_) != layout.sequences()) {
    throw Error(fmt::format("cannot append positions of {} sequences to {} rows", layout.sequences(), rows_.size()));
  }
  for (int64_t r = 0; r < layout.sequences(); ++r) {
    rows_[static_cast<size_t>(r)].append(key_value.narrow(0, layout.begin(r), layout.length(r)));
  }
}

void RowKeys::reorder(const std::vector<int64_t>& order) {
  std::vector<int64_t> uses(rows_.size(), 0);
  for (const int64_t r : order) ++uses.at(static_cast<size_t>(r));
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (uses[r] > 1) rows_[r].share();
  }
  std::vector<Row> moved;
  moved.reserve(order.size());
  for (const int64_t r : order) moved.push_back(rows_[static_cast<size_t>(r)]);
  rows_ = std::move(moved);
}

Tensor RowKeys::row(int64_t r) const {
  const Row& row = rows_.at(static_cast<size_t>(r));
  std::vector<Tensor> parts = row.shared;
  if (row.length > 0) parts.push_back(row.own.narrow(0, 0, row.length));
  return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
}

int64_t RowKeys::bytes() const {
  int64_t total = 0;
  for (const Row& row : rows_) {
    if (row.own.defined()) total += static_cast<int64_t>(row.own.nbytes());
    for (const Tensor& part : row.shared) total += static_cast<int64_t>(part.nbytes());
  }
  return total;
}

}  // namespace plumb
