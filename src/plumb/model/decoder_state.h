// The state of incremental decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plumb/nn/attention/attention.h"

namespace plumb {

/// For each row (a hypothesis or a text being continued): its position, the state of its self-attentions, and the
/// source it attends to.
struct DecoderState {
  std::vector<std::unique_ptr<AttentionState>> self;  // [layer]
  std::vector<AttentionMemory> memory;                // [layer]; empty without cross-attention
  std::vector<int64_t> rows_per_source;  // rows of each source, adjacent and in order; empty without sources
  std::vector<int64_t> positions;        // [row]: tokens read so far

  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(positions.size()); }

  /// The memory of the self-attention states. For softmax it grows with the tokens read; for fast weights and recurrent
  /// layers it is constant.
  [[nodiscard]] int64_t self_bytes() const;

  /// Row i becomes the former row order[i]; a row may occur several times or not at all. With sources, `rows` becomes
  /// the new rows_per_source, and every row keeps its source. Throws Error, and leaves the state unchanged, if a row
  /// does not exist or the sources do not match.
  void reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows = {});
};

}  // namespace plumb
