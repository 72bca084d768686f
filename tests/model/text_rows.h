// Batches of adjacent pieces of rows of text, as in a stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plumb/base/batch.h"

namespace plumb::test {

/// Tokens [begin, end) of each row that are followed by another, which is the label.
inline Batch piece_of_rows(const std::vector<std::vector<int64_t>>& rows, int64_t begin, int64_t end) {
  Batch batch;
  for (const std::vector<int64_t>& row : rows) {
    const int64_t last = std::min(end, std::ssize(row) - 1);
    for (int64_t t = begin; t < last; ++t) {
      batch.target_input.push_back(row[static_cast<size_t>(t)]);
      batch.labels.push_back(row[static_cast<size_t>(t) + 1]);
    }
    batch.target_layout.append(std::max<int64_t>(last - begin, 0));
  }
  return batch;
}

}  // namespace plumb::test
