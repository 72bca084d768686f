// Keys and values of rows that grow, branch and end, contiguous in memory per row, for scores computed from whole
// matrices of keys. (The kernel for ops::CachedKeys looks keys up one by one.)
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb {

class RowKeys {
 public:
  explicit RowKeys(int64_t rows) : rows_(static_cast<size_t>(rows)) {}

  /// Appends the positions of sequence r of `layout` to row r. key_value: (tokens, 2·kv_width). A full row grows by a
  /// quarter, so appending takes amortized constant time per position. Throws Error unless there is one sequence per
  /// row.
  void append(const Tensor& key_value, const Ragged& layout);

  /// Row i becomes the former row order[i]. Rows that have branched share the memory of their common positions.
  void reorder(const std::vector<int64_t>& order);

  /// Keys and values of a row that is not empty, (length, 2·kv_width): a view that is valid until the next `append`, or
  /// a copy if the row has branched.
  [[nodiscard]] Tensor row(int64_t r) const;

  /// The memory of keys and values; shared memory counts once per row.
  [[nodiscard]] int64_t bytes() const;

 private:
  struct Row {
    std::vector<Tensor> shared;  // the first positions, in parts that other rows may share; never written to
    Tensor own;                  // (capacity, 2·kv_width), later positions; undefined: none
    int64_t length = 0;          // positions in `own`

    void append(const Tensor& key_value);
    void share();
  };
  std::vector<Row> rows_;
};

}  // namespace plumb
