// From labeled text to a data directory for classification: the source is an example's first sentence, the target its
// second, empty unless examples are pairs, and each example has a label.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/data/labeled_text.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct LabelOptions {
  std::filesystem::path train;
  std::optional<std::filesystem::path> valid;                        // absent: held out from train
  std::vector<std::pair<std::string, std::filesystem::path>> tests;  // by name
  LabeledTextFormat format;                                          // for all files
  TokenizerOptions tokenizer;                                        // trained on the training text only
  std::filesystem::path tokenizer_from;  // if not empty: where borrow_tokenizer takes the tokenizer from
  int64_t length_limit = 256;            // tokens per example, without special tokens; longer examples are truncated
  int64_t valid_size = 0;                // examples to hold out if `valid` is absent; 0: 1,000, but at most 5% of train
  uint64_t seed = 1;                     // chooses the held-out examples
};

/// Prepares a data directory at `out` and returns the contents of its data.json. Training examples without text are
/// dropped. The labels are those of the training text, in sorted order. The directory is created atomically and
/// replaces one from an earlier call. Throws Error on unusable input, if another split has a label that the training
/// text lacks, or if `out` contains anything else.
Json prepare_labels(const LabelOptions& options, const std::filesystem::path& out);

/// Removes tokens one by one from the end of the longer sequence (the second, if equally long) until both together have
/// at most `limit` tokens. Returns whether anything was removed.
bool cut_to_limit(std::vector<int32_t>& first, std::vector<int32_t>& second, int64_t limit);

}  // namespace plumb
