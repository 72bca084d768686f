// Keys and values of rows that grow, branch and end, where those of each row lie together in memory: for scores that
// are computed from whole matrices of keys. (ops::CachedKeys, whose kernel finds keys one by one, copies nothing when
// rows branch.)
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb {

class RowKeys {
 public:
  explicit RowKeys(int64_t rows) : rows_(static_cast<size_t>(rows)) {}

  /// Further positions: those of sequence r of `layout` are appended to row r. key_value: (tokens, 2·kv_width). The
  /// memory of a row grows by a quarter when it is full, so that each position is copied a few times at most. Throws
  /// Error if the number of rows differs from that of the sequences.
  void append(const Tensor& key_value, const Ragged& layout);

  /// Row i becomes the former row order[i]. Rows that occur several times share their memory until they are appended
  /// to.
  void reorder(const std::vector<int64_t>& order);

  /// Keys and values of a row that has positions, (length, 2·kv_width), a view that is valid until the next call of
  /// `append`.
  [[nodiscard]] Tensor row(int64_t r) const;

  /// The memory of keys and values; what rows share counts for each.
  [[nodiscard]] int64_t bytes() const;

 private:
  struct Row {
    Tensor held;  // (capacity, 2·kv_width); undefined before the first position
    int64_t length = 0;
    bool shared = false;  // others may hold the same memory
  };
  std::vector<Row> rows_;
};

}  // namespace plumb
