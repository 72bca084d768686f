// Translates many sentences: sorts them by length into batches, searches, and restores their order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/decode/beam_search.h"
#include "plumb/model/model.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// Called after each batch, never concurrently, with the number of finished sentences and of output tokens, including
/// EOS.
using TranslateProgress = std::function<void(int64_t sentences, int64_t tokens)>;

/// Throws Error if the model cannot translate.
Translates& translator_of(Model& model);

/// The translations of sentences, all ids without special tokens, in the given order; empty ones stay empty. A source
/// longer than options.longest_source, or than the model can read, is truncated, with a warning that has its number.
/// Throws if the model's scores are not finite.
std::vector<std::vector<int32_t>> translate(Translates& model, const std::vector<std::vector<int32_t>>& sources,
                                            const DecodeOptions& options, const TranslateProgress& progress = {});

/// The same for text. Throws Error if the tokenizers do not have the model's vocabulary sizes.
std::vector<std::string> translate(Translates& model, const Tokenizer& source, const Tokenizer& target,
                                   const std::vector<std::string>& lines, const DecodeOptions& options,
                                   const TranslateProgress& progress = {});

}  // namespace plumb
