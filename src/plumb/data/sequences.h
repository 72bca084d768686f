// Builds batches from sequences of token ids, or from JSON.
#pragma once

#include <cstdint>
#include <span>

#include "plumb/base/batch.h"
#include "plumb/base/json.h"
#include "plumb/text/specials.h"

namespace plumb {

using TokenSpan = std::span<const int32_t>;

/// Appends a translation pair: the encoder reads source + EOS; the decoder reads BOS + target and predicts target +
/// EOS. Both are given without special tokens.
void append_pair(Batch& batch, TokenSpan source, const Specials& source_specials, TokenSpan target,
                 const Specials& target_specials, int64_t example);

/// Appends a sentence for a language model, which reads BOS + ids and predicts ids + EOS.
void append_sentence(Batch& batch, TokenSpan ids, const Specials& specials, int64_t example);

/// Appends a non-empty block of running text: the model reads BOS and all ids except the last, and predicts the ids.
void append_running_text(Batch& batch, TokenSpan ids, const Specials& specials, int64_t example);

/// Appends a sentence or, if `second` is not empty, a pair of sentences for a classifier: BOS + first + EOS
/// [+ second + EOS], where the second with its EOS is segment 1, and there are `specials.separators` EOS between them;
/// `label` is predicted from the whole sequence. `backward`: each sentence is reversed, but its EOS remains last.
void append_labeled(Batch& batch, TokenSpan first, TokenSpan second, const Specials& specials, int64_t label,
                    int64_t example, bool backward = false);

/// The number of tokens that append_labeled appends for sentences of these lengths.
int64_t labeled_length(int64_t first, int64_t second, const Specials& specials);

/// Converts a batch of labeled sequences for a decoder, which reads them on the target side, without segments.
void move_to_target(Batch& batch);

/// A batch from JSON (docs/formats/README.md):
///   {"source": [[ids]], "target": [[ids]]}   translation; the default special tokens are added
///   {"tokens": [[ids]]}                      language modeling: position i predicts i + 1, nothing is added
///   {"tokens": [[ids]], "labels": [ids]}     classification, nothing is added; optional: "segments": [[0 or 1]]
///   {"tokens": [[ids]], "labels": [[ids]]}   masked language modeling, nothing is added; null: not predicted
/// Throws Error on any other shape.
Batch batch_from_json(const Json& json);

}  // namespace plumb
