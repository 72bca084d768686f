// Cuts a stream of text, which is read in parallel rows, into segments, one per step.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb {

/// A stream is a text of many rows that are read side by side; a column is one position of every row. A step reads the
/// next `length` columns, and gradients stop at their beginning: truncated backpropagation through time.
struct StreamCut {
  int64_t length = 70;
  bool varied = false;  // segments have random lengths around `length`

  bool operator==(const StreamCut&) const = default;
};

/// The length of segment `number` of an epoch: `length` or, if varied,
///   max(5, ⌊x⌋), x normal with standard deviation 5 around `length` with probability 0.95, else around length/2,
/// so that segments end at different positions in every epoch: Merity et al. 2018, arXiv 1708.02182, section 5, with
/// the deviation and minimum of the authors' code. A function of the arguments only.
int64_t segment_length(const StreamCut& cut, uint64_t seed, int64_t epoch, int64_t number);

/// The columns 0, 1, …, `columns` − 1 of an epoch in segments, in order; the last may be shorter. `seed` and `epoch`
/// matter only if lengths are varied. Throws Error if the length is below 1.
std::vector<std::vector<int64_t>> cut_stream(int64_t columns, const StreamCut& cut, uint64_t seed = 0,
                                             int64_t epoch = 0);

}  // namespace plumb
