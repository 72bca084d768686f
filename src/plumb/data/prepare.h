// From raw parallel text to a data directory: split, learn the tokenizers, cut into tokens, write.
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
  std::optional<CorpusFiles> valid;                        // absent: held out from train
  std::vector<std::pair<std::string, CorpusFiles>> tests;  // by name
  TokenizerOptions tokenizer;                              // learnt from the training text alone
  bool joint = true;                                       // one tokenizer for both languages
  int64_t length_limit = 128;  // tokens a side, specials not counted; longer training pairs are dropped
  int64_t valid_size = 0;      // pairs to hold out where `valid` is absent; 0: 1,000, but at most 5 % of train
  uint64_t seed = 1;           // of the choice of the held-out pairs
  std::string source_language, target_language;  // noted in data.json if given
};

/// Prepares a data directory at `out` and returns what its data.json holds. Only training pairs are ever dropped; of a
/// given validation or test set every line is kept. The directory appears complete or not at all; one that an earlier
/// call made is replaced. Throws Error on unusable input, or if `out` holds something else.
Json prepare_data(const PrepareOptions& options, const std::filesystem::path& out);

/// Text in memory; `inputs` says in data.json where it came from.
struct Corpora {
  ParallelText train;
  std::optional<ParallelText> valid;
  std::vector<std::pair<std::string, ParallelText>> tests;
  Json inputs = Json::object();
};

/// The same for text in memory; the files in `options` are not read.
Json prepare_corpora(Corpora corpora, const PrepareOptions& options, const std::filesystem::path& out);

}  // namespace plumb
