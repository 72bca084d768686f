// Translating many sentences: sorted by length into batches, searched, and put back in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/data/directory.h"
#include "plumb/decode/beam_search.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// Told after every batch, never by two threads at once, how many sentences are done and how many tokens have been put
/// out, EOS counted.
using TranslateProgress = std::function<void(int64_t sentences, int64_t tokens)>;

/// The translations of sentences, all ids without specials, in the order given; empty ones stay empty. Of a source
/// longer than options.longest_source the beginning is translated, and said so. Throws as beam_search does, but names
/// the sentence before any work if one is too long for the model.
std::vector<std::vector<int32_t>> translate(Translates& model, const std::vector<std::vector<int32_t>>& sources,
                                            const DecodeOptions& options, const TranslateProgress& progress = {});

/// The same for text. Throws Error if the tokenizers are not of the model's vocabulary sizes.
std::vector<std::string> translate(Translates& model, const Tokenizer& source, const Tokenizer& target,
                                   const std::vector<std::string>& lines, const DecodeOptions& options,
                                   const TranslateProgress& progress = {});

/// Corpus BLEU in percent of a split's translation against its text: detokenized, cased, sacreBLEU's 13a.
double bleu_of_split(Translates& model, const DataDirectory& data, const std::string& split,
                     const DecodeOptions& options);

}  // namespace plumb
