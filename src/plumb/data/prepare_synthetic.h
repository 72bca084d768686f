// The synthetic German–English corpus as a data directory: pairs for translation, or its English side for language
// models.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plumb/base/json.h"
#include "plumb/data/prepare_text.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct SyntheticOptions {
  int64_t pairs = 20000;        // including valid and test
  int64_t valid = 0, test = 0;  // 0: 1,000 each, but at most an eighth of the pairs
  TokenizerOptions tokenizer{.kind = "bpe", .vocabulary = 2000};
  bool joint = true;
  uint64_t seed = 1;
};

/// Prepares the corpus with the splits train, valid and test, no two of which share a target sentence. Throws Error if
/// `out` contains anything else, if a split would be empty, or if there are more than corpus::kMaximumPairs pairs.
Json prepare_synthetic(const SyntheticOptions& options, const std::filesystem::path& out);

/// Prepares the English side of `pairs` pairs as text for language models, with the splits train and valid. Throws
/// Error as prepare_text does, or if `pairs` is out of range.
Json prepare_synthetic_text(int64_t pairs, uint64_t seed, const TextOptions& options, const std::filesystem::path& out);

/// Writes the text of the corpus to PREFIX.de and PREFIX.en, one sentence per line. Throws Error if `pairs` is out of
/// range.
void write_synthetic_text(int64_t pairs, uint64_t seed, const std::string& prefix);

}  // namespace plumb
