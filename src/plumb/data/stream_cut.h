// Where a stream of text, which is read in parallel rows, is cut into the segments of single steps.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb {

/// A stream is a text of many rows that are read side by side; a column is one position of every row. A step reads the
/// next `length` columns, and the gradient ends where they begin: truncated backpropagation through time.
struct StreamCut {
  int64_t length = 70;

  bool operator==(const StreamCut&) const = default;
};

/// The columns 0, 1, …, `columns` − 1 of an epoch in segments, in order; the last is what is left.
std::vector<std::vector<int64_t>> cut_stream(int64_t columns, const StreamCut& cut);

}  // namespace plumb
