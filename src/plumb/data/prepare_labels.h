// From labeled text to a data directory for classification: the source is an example's sentence, the target the second
// sentence of a pair, and beside them stands the label.
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
  LabeledTextFormat format;                                          // of all files
  TokenizerOptions tokenizer;                                        // learnt from the training text alone
  std::filesystem::path tokenizer_from;  // a data directory whose tokenizer is used instead, if not empty
  int64_t length_limit = 256;            // tokens of an example, specials not counted; longer examples are cut
  int64_t valid_size = 0;  // examples to hold out where `valid` is absent; 0: 1,000, but at most 5 % of train
  uint64_t seed = 1;       // of the choice of the held-out examples
};

/// Prepares a data directory at `out` and returns what its data.json holds. Training examples without text are dropped.
/// The labels are those of the training text, in sorted order. The directory appears complete or not at all; one that
/// an earlier call made is replaced. Throws Error on unusable input, if a label of another split is not among them, or
/// if `out` holds something else.
Json prepare_labels(const LabelOptions& options, const std::filesystem::path& out);

/// Cuts the end off the longer sequence until both together have at most `limit` tokens; of two of equal length the
/// second is cut. Returns whether anything was cut.
bool cut_to_limit(std::vector<int32_t>& first, std::vector<int32_t>& second, int64_t limit);

}  // namespace plumb
