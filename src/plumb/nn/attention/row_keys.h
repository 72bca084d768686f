// Keys and values of rows that grow, branch and end, where those of each row lie together in memory: for scores that
// are computed from whole matrices of keys. (The kernel behind ops::CachedKeys finds keys one by one.)
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

  /// Row i becomes the former row order[i]. Rows that have branched share the memory of what they have in common.
  void reorder(const std::vector<int64_t>& order);

  /// Keys and values of a row that has positions, (length, 2·kv_width): a view that is valid until the next call of
  /// `append`, or, of a row that has branched, a copy.
  [[nodiscard]] Tensor row(int64_t r) const;

  /// The memory of keys and values; what rows share counts for each.
  [[nodiscard]] int64_t bytes() const;

 private:
  struct Row {
    std::vector<Tensor> shared;  // the first positions, in parts that other rows may have too: never written to
    Tensor own;                  // (capacity, 2·kv_width), the positions after them; undefined: none
    int64_t length = 0;          // positions in `own`

    void append(const Tensor& key_value);
    void share();
  };
  std::vector<Row> rows_;
};

}  // namespace plumb
