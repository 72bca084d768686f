// What preparing parallel, running and labeled text share.
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

/// A tokenizer learnt from lines; says so if they give fewer pieces than wanted. `which` names it in that message.
Tokenizer train_tokenizer(const std::vector<std::string>& lines, const TokenizerOptions& options,
                          const std::string& which);

/// The ids of every line, with a progress bar.
Sequences encode_lines(const Tokenizer& tokenizer, const std::vector<std::string>& lines, const std::string& label);

/// {"tokens", "longest", "unknown"} of sequences.
Json facts_of(const Sequences& sequences, const Specials& specials);

/// What data.json says of tokenizers that were learnt with these options; `joint`: they are one.
Json describe_tokenizers(const TokenizerOptions& options, const Tokenizer& source, const Tokenizer& target, bool joint);

/// Throws Error, naming the files, if a split has no example with tokens on both sides, or, of running and labeled
/// text, whose second side is empty, on either: nothing could be learned or measured from it.
enum class WantedSides { both, either };
void require_tokens(const std::string& split, const Sequences& first, const Sequences& second, WantedSides sides,
                    const Json& inputs);

/// The files that a split was read from, by `inputs` of data.json; the split's name if it comes from none.
std::string origin_of(const std::string& split, const Json& inputs);

/// {"file", "bytes", "sha256"} of an input file.
Json describe_file(const std::filesystem::path& file);

/// Throws Error if test sets have names that make no file names, or one name twice.
void check_test_names(const std::vector<std::string>& names);

/// Writes a data directory that appears complete or not at all: `fill` writes what is beside data.json, with an empty
/// folder `splits` in the directory that it is given.
void write_data_directory(const std::filesystem::path& out, const Json& info,
                          const std::function<void(const std::filesystem::path&)>& fill);

/// Writes lines atomically.
void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines);

}  // namespace plumb
