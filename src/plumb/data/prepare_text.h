// From raw text to a data directory for language models: sequences on the target side, with empty sources.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct TextOptions {
  std::filesystem::path train;
  std::vector<std::pair<std::string, std::filesystem::path>> corpora;  // by name: several corpora instead of `train`
  std::optional<std::filesystem::path> valid;                          // absent: the last lines of each corpus
  std::vector<std::pair<std::string, std::filesystem::path>> tests;    // by name
  TokenizerOptions tokenizer;                                          // trained on the training text only
  std::filesystem::path tokenizer_from;  // if not empty: where borrow_tokenizer takes the tokenizer from
  /// Tokens per sequence: the lines, each followed by EOS, are concatenated and cut into blocks; the last block of a
  /// corpus may be shorter. 0: each line is a sequence.
  int64_t block = 256;
  int64_t length_limit = 512;  // if lines are sequences: tokens, without EOS; longer training lines are dropped
  int64_t valid_size = 0;      // lines per corpus to hold out if `valid` is absent; 0: 1,000, but at most 5%
};

/// Prepares a data directory at `out` and returns the contents of its data.json. Blank lines are dropped. Several
/// corpora form one split `train`, in the given order; no block contains text of two. The directory is created
/// atomically and replaces one from an earlier call. Throws Error on unusable input, if a corpus has no line left to
/// train on, if both `train` and `corpora` are given, or if `out` contains anything else.
Json prepare_text(const TextOptions& options, const std::filesystem::path& out);

/// Lines in memory; `inputs` is their description in data.json.
struct TextCorpora {
  std::vector<std::string> train;
  std::optional<std::vector<std::string>> valid;
  std::vector<std::pair<std::string, std::vector<std::string>>> tests;
  Json inputs = Json::object();
};

/// The same for text in memory, with one corpus to train on; the files in `options` are not read.
Json prepare_text_lines(TextCorpora corpora, const TextOptions& options, const std::filesystem::path& out);

}  // namespace plumb
