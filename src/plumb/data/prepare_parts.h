// Functions shared by the preparation of parallel, running and labeled text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

using Sequences = std::vector<std::vector<int32_t>>;

/// Trains a tokenizer; prints a message, with the name `which`, if the lines yield fewer pieces than requested.
Tokenizer train_tokenizer(const std::vector<std::string>& lines, const TokenizerOptions& options,
                          const std::string& which);

/// A tokenizer and its entry in data.json.
struct DescribedTokenizer {
  Tokenizer tokenizer;
  Json description;
};

/// The tokenizer of a data directory or a model's folder, or a tokenizer file. Throws Error if there is none, or if a
/// data directory has one per side.
DescribedTokenizer borrow_tokenizer(const std::filesystem::path& from);

/// The ids of all lines, with a progress bar.
Sequences encode_lines(const Tokenizer& tokenizer, const std::vector<std::string>& lines, const std::string& label);

/// Whether line i of `lines` belongs to an evenly spaced sample of at most `most` lines (0: all).
bool in_sample(int64_t i, int64_t lines, int64_t most);

/// Lines or pairs that are encoded at a time; only these are kept in memory when text is streamed.
inline constexpr size_t kLinesAtOnce = 20000;

/// encode_lines without a progress bar.
Sequences encode_block(const Tokenizer& tokenizer, const std::vector<std::string>& lines);

/// Computes {"tokens", "longest", "unknown"} from sequences added one by one.
class SequenceFacts {
 public:
  explicit SequenceFacts(const Specials& specials) : unknown_id_(specials.unknown) {}
  void add(std::span<const int32_t> sequence);
  [[nodiscard]] Json json() const { return {{"tokens", tokens_}, {"longest", longest_}, {"unknown", unknown_}}; }

 private:
  int32_t unknown_id_;
  int64_t tokens_ = 0, longest_ = 0, unknown_ = 0;
};

/// The same for sequences in memory.
Json facts_of(const Sequences& sequences, const Specials& specials);

/// The data.json entry for tokenizers trained with these options on `lines` lines or pairs, or a sample of them if that
/// exceeds `options.sample`; `joint`: there is only one tokenizer.
Json describe_tokenizers(const TokenizerOptions& options, const Tokenizer& source, const Tokenizer& target, bool joint,
                         int64_t lines);

/// "1,000 of 20,000 pairs", or "20,000 pairs" if the sample includes all.
std::string describe_sample(const TokenizerOptions& options, int64_t lines, const std::string& what);

/// Throws Error, naming the files, unless `usable`: whether an example of a split has tokens on both sides or, for
/// running and labeled text, on either side.
enum class WantedSides { both, either };
void require_usable(bool usable, const std::string& split, WantedSides sides, const Json& inputs);

/// The files that a split was read from, according to `inputs` in data.json; the split's name if there are none.
std::string origin_of(const std::string& split, const Json& inputs);

/// {"file", "bytes", "sha256"} of an input file; only "file" if it is not a regular file, such as a pipe.
Json describe_file(const std::filesystem::path& file);

/// Throws Error about options that all kinds of data have: a number that is too small, or a name of a test set that is
/// "train", "valid" or not usable as a file name, or occurs twice.
void check_options(int64_t length_limit, int64_t valid_size, const std::vector<std::string>& test_names);

/// How many of these examples to hold out for validation if that is not given: a twentieth, at most 1,000.
int64_t held_out_of(int64_t examples);

/// `wanted` or, if that is 0, held_out_of(examples). Throws Error, naming one as `what`, if none is left for training.
int64_t number_to_hold_out(int64_t wanted, int64_t examples, const char* what);
/// Throws Error if a name of a corpus is not usable as a file name or occurs twice, or if there are corpora and other
/// training text.
void check_corpus_names(const std::vector<std::string>& names, bool other_text);

/// The names in a list of pairs (name, …).
template <typename Named>
std::vector<std::string> names_of(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const auto& [name, rest] : list) names.push_back(name);
  return names;
}

/// The entry splits.train.corpora of data.json. Throws Error if a size is 0.
Json describe_corpora(const std::vector<std::string>& names, const std::vector<int64_t>& sizes);

/// Throws Error unless a data directory for this task ("translation", "classification" or "language-modeling") may be
/// written to `out`. It may replace one for the same task.
void check_data_output(const std::filesystem::path& out, const std::string& task);

/// Writes a data directory atomically: `fill` writes everything except data.json to the given directory, which contains
/// an empty folder `splits`. data.json is written last, so `fill` may complete `info`.
void write_data_directory(const std::filesystem::path& out, const Json& info,
                          const std::function<void(const std::filesystem::path&)>& fill);

/// Writes lines atomically.
void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines);

}  // namespace plumb
