// Beam search with a translation model, one batch of sentences at a time; beam 1 is greedy decoding.
//
// The rules follow fairseq. A hypothesis of n tokens, including EOS, has the score Σ log p(token) / n^length_penalty.
// At each position, the 2·beam best continuations of a sentence's active hypotheses, by Σ log p, are considered: those
// among the first `beam` that end in EOS are finished; the best `beam` of the others stay active. A hypothesis at the
// maximum length can only be continued by EOS. A sentence is done when `beam` hypotheses have finished, or when no
// active one can surpass the best finished one at any length (which saves time and does not change the result). The
// result is the finished hypothesis with the best score; among equal ones, the first found. PAD and BOS are never
// output, although the softmax includes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/text/specials.h"

namespace plumb {

/// Larger than any useful width, and small enough that counts of hypotheses do not overflow.
inline constexpr int64_t kLargestBeam = 1000;

struct DecodeOptions {
  int64_t beam = 5;             // beam width
  double length_penalty = 1.0;  // a score is divided by length^this; 0: not divided; larger: longer output
  double length_factor = 1.5;   // the output has at most length_factor · source tokens + length_extra tokens
  int64_t length_extra = 20;
  int64_t longest_source = 1024;      // tokens; longer sentences are truncated
  int64_t batch_tokens = 4096;        // source tokens of a batch (including EOS) times beam width
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
  Specials source{}, target{};        // special tokens of the two vocabularies
  bool imported = false;              // the model may have more tokens than its tokenizers
  int64_t target_pieces = 0;          // target ids from here on are never put out; 0: all may be
};

/// Throws Error on invalid values.
void validate(const DecodeOptions& options);

/// The translations of one batch of sentences, all ids without special tokens; an empty sentence has an empty
/// translation. Throws Error on a source longer than the model can read, and if the model's scores are not finite.
std::vector<std::vector<int32_t>> beam_search(Translates& model, const std::vector<std::vector<int32_t>>& sources,
                                              const DecodeOptions& options);

}  // namespace plumb
