// From raw text to a data directory for language models: sequences of one side, whose source is empty.
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
  std::optional<std::filesystem::path> valid;                        // absent: the last lines of train
  std::vector<std::pair<std::string, std::filesystem::path>> tests;  // by name
  TokenizerOptions tokenizer;                                        // learnt from the training text alone
  /// Tokens of a sequence: the lines, each ended by EOS, follow one another and are cut into blocks, the last of which
  /// may be shorter. 0: each line is a sequence.
  int64_t block = 256;
  int64_t length_limit = 512;  // where a line is a sequence: tokens, EOS not counted; longer training lines are dropped
  int64_t valid_size = 0;      // lines to hold out where `valid` is absent; 0: 1,000, but at most 5 % of train
};

/// Prepares a data directory at `out` and returns what its data.json holds. Empty lines are left out. The directory
/// appears complete or not at all; one that an earlier call made is replaced. Throws Error on unusable input, or if
/// `out` holds something else.
Json prepare_text(const TextOptions& options, const std::filesystem::path& out);

/// Lines in memory; `inputs` says in data.json where they came from.
struct TextCorpora {
  std::vector<std::string> train;
  std::optional<std::vector<std::string>> valid;
  std::vector<std::pair<std::string, std::vector<std::string>>> tests;
  Json inputs = Json::object();
};

/// The same for text in memory; the files in `options` are not read.
Json prepare_text_lines(TextCorpora corpora, const TextOptions& options, const std::filesystem::path& out);

}  // namespace plumb
