// A batch of sentence pairs as the models read it: token ids one after the other, and where each sentence begins.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/base/ragged.h"

namespace plumb {

/// Ids of the special tokens in every vocabulary of Plumb's.
constexpr int32_t kPad = 0, kBos = 1, kEos = 2, kUnknown = 3;

/// A batch of pairs without padding.
struct Batch {
  std::vector<int64_t> source;         // (source tokens): ids + EOS of each pair
  std::vector<int64_t> target_input;   // (target tokens): BOS + ids
  std::vector<int64_t> target_output;  // (target tokens): ids + EOS
  Ragged source_layout, target_layout;
  std::vector<int64_t> examples;  // (pairs): the index of each pair in its split

  bool operator==(const Batch&) const = default;
};

/// Appends one pair, given without specials.
void append(Batch& batch, std::span<const int32_t> source, std::span<const int32_t> target, int64_t example);

/// Appends a block of running text, not empty, as a target whose end is none: BOS and all ids but the last are read,
/// the ids are predicted. The source is empty.
void append_running_text(Batch& batch, std::span<const int32_t> ids, int64_t example);

/// A batch from `{"source": [[ids]], "target": [[ids]]}`, ids without specials. Throws Error if it is not of that
/// shape.
Batch batch_from_json(const Json& json);

}  // namespace plumb
