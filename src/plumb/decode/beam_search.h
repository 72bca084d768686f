// Beam search over a model that translates, a batch of sentences at a time; beam 1 is greedy decoding.
//
// The rule (that of fairseq). A hypothesis of n tokens, its EOS counted, has the score  Σ log p(token) /
// n^length_penalty. At every position the 2·beam best continuations of a sentence's active hypotheses, by Σ log p, are
// looked at: those among the first `beam` that end in EOS are finished; the best `beam` of the others stay active. A
// hypothesis that has reached the largest length can only be continued by EOS. A sentence is done when `beam`
// hypotheses have finished, or when no active one can surpass the best finished any more, however long it gets (which
// saves time and changes nothing). The finished hypothesis of the best score is the result; of equal ones the first
// found. PAD and BOS are never put out, though they have their share of the probability.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/capabilities.h"
#include "plumb/text/specials.h"

namespace plumb {

/// Beyond any use, and small enough that hypotheses can be counted.
inline constexpr int64_t kLargestBeam = 1000;

struct DecodeOptions {
  int64_t beam = 5;             // hypotheses kept a sentence
  double length_penalty = 1.0;  // exponent of the length by which a score is divided; 0: none, larger: longer output
  double length_factor = 1.5;   // the output has at most length_factor · source tokens + length_extra tokens
  int64_t length_extra = 20;
  int64_t longest_source = 1024;      // tokens; of a longer sentence the beginning is translated
  int64_t batch_tokens = 4096;        // a batch's source tokens (EOS counted) times beam
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
  Specials source{}, target{};        // the special tokens of the two vocabularies; no keys

  bool operator==(const DecodeOptions&) const = default;
};

void describe(Fields& field, DecodeOptions& options);

/// Throws Error on values that make no search.
void validate(const DecodeOptions& options);

/// The translations of one batch of sentences, all ids without specials; an empty sentence gives an empty one.
/// Throws Error on a source longer than the model can take, and if the model's scores are not
/// finite.
std::vector<std::vector<int32_t>> beam_search(Translates& model, const std::vector<std::vector<int32_t>>& sources,
                                              const DecodeOptions& options);

}  // namespace plumb
