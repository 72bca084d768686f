// What decoding step by step keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plumb/nn/attention/attention.h"

namespace plumb {

/// For every row (a hypothesis, a text that is continued): how far it has read, what its self-attentions have seen, and
/// the source that it looks at.
struct DecoderState {
  std::vector<std::unique_ptr<AttentionState>> self;  // [layer]
  std::vector<AttentionMemory> memory;                // [layer]; empty without cross-attention
  std::vector<int64_t> rows_per_source;  // rows of each source, adjacent and in order; empty without sources
  std::vector<int64_t> positions;        // [row]: tokens that it has read

  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(positions.size()); }

  /// Row i becomes what row order[i] was; a row may be named several times or not at all. `rows` as rows_per_source
  /// afterwards, where there are sources: rows keep looking at theirs. Throws Error, and leaves the state as it is,
  /// where a row is not there or the sources do not fit.
  void reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows = {});
};

}  // namespace plumb
