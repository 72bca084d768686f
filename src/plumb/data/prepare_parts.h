// Common parts of preparing parallel, running and labeled text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

using Sequences = std::vector<std::vector<int32_t>>;

/// A tokenizer trained on lines; reports if they yield fewer pieces than requested. `which` names it in that message.
Tokenizer train_tokenizer(const std::vector<std::string>& lines, const TokenizerOptions& options,
                          const std::string& which);

/// The ids of all lines, with a progress bar.
Sequences encode_lines(const Tokenizer& tokenizer, const std::vector<std::string>& lines, const std::string& label);

/// {"tokens", "longest", "unknown"} for sequences.
Json facts_of(const Sequences& sequences, const Specials& specials);

/// The data.json entry for tokenizers trained with these options; `joint`: there is only one.
Json describe_tokenizers(const TokenizerOptions& options, const Tokenizer& source, const Tokenizer& target, bool joint);

/// Throws Error, naming the files, if no example of a split has tokens on both sides, or on either side for running and
/// labeled text, whose second side may be empty: nothing could be learned or measured from it.
enum class WantedSides { both, either };
void require_tokens(const std::string& split, const Sequences& first, const Sequences& second, WantedSides sides,
                    const Json& inputs);

/// The files that a split was read from, according to `inputs` in data.json; the split's name if there are none.
std::string origin_of(const std::string& split, const Json& inputs);

/// {"file", "bytes", "sha256"} of an input file.
Json describe_file(const std::filesystem::path& file);

/// Throws Error if names of test sets are not usable as file names, or occur twice.
void check_test_names(const std::vector<std::string>& names);

/// Writes a data directory atomically: `fill` writes everything except data.json into the given directory, which has an
/// empty folder `splits`.
void write_data_directory(const std::filesystem::path& out, const Json& info,
                          const std::function<void(const std::filesystem::path&)>& fill);

/// Writes lines atomically.
void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines);

}  // namespace plumb
