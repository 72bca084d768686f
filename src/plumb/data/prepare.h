// From raw parallel text to a data directory: split, train the tokenizers, tokenize, write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/data/parallel_text.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct PrepareOptions {
  CorpusFiles train;
  std::vector<std::pair<std::string, CorpusFiles>> corpora;  // by name: several corpora instead of `train`
  std::optional<CorpusFiles> valid;                          // absent: held out from train
  std::vector<std::pair<std::string, CorpusFiles>> tests;    // by name
  TokenizerOptions tokenizer;                                // trained on the training text only
  bool joint = true;                                         // one tokenizer for both languages
  int64_t length_limit = 128;  // tokens per side, without special tokens; longer training pairs are dropped
  int64_t valid_size = 0;      // pairs to hold out if `valid` is absent; 0: 1,000, but at most 5% of train
  uint64_t seed = 1;           // chooses the held-out pairs
  std::string source_language, target_language;  // recorded in data.json if given
};

/// Prepares a data directory at `out` and returns the contents of its data.json. Only training pairs are dropped; given
/// validation and test sets are kept in full. Several corpora form one split `train`, in the given order, and share the
/// tokenizers. The directory is created atomically and replaces one from an earlier call. Throws Error on unusable
/// input, if a corpus has no pair left to train on, if both `train` and `corpora` are given, or if `out` contains
/// anything else.
Json prepare_data(const PrepareOptions& options, const std::filesystem::path& out);

/// Text in memory; `inputs` is its description in data.json.
struct Corpora {
  ParallelText train;
  std::optional<ParallelText> valid;
  std::vector<std::pair<std::string, ParallelText>> tests;
  Json inputs = Json::object();
};

/// The same for text in memory, with one corpus to train on; the files in `options` are not read.
Json prepare_corpora(Corpora corpora, const PrepareOptions& options, const std::filesystem::path& out);

}  // namespace plumb
