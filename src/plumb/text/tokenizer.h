// Tokenizers: text to token ids and back.
// Byte-pair encoding: Sennrich et al., arXiv 1508.07909; unigram: Kudo, arXiv 1804.10959; both as implemented in
// SentencePiece (Kudo & Richardson, arXiv 1808.06226), which normalizes text by NFKC first.
// Whole words: text/word_tokenizer.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/text/specials.h"

namespace plumb {

struct TokenizerOptions {
  std::string kind = "bpe";         // or "unigram", or "word"
  int64_t vocabulary = 8000;        // pieces, including the special tokens
  bool mask = false;                // adds a special token "<mask>" for masked language modeling
  double character_coverage = 1.0;  // the fraction of character occurrences covered by pieces; the rest is unknown
  /// The most lines or pairs to train on when data are prepared, evenly spaced in a larger text; 0: no limit.
  /// `Tokenizer::train` uses all lines that it is given.
  int64_t sample = 1'000'000;
};

/// An immutable tokenizer; copies share one model. Thread-safe.
class Tokenizer {
 public:
  /// Reads a file, or the tokenizer in a model's folder. Throws Error if it is missing or not a supported tokenizer.
  static Tokenizer from_file(const std::filesystem::path& path);

  /// Learns the pieces from lines of text, deterministically. The vocabulary is smaller than requested if the text does
  /// not yield enough pieces. Throws Error on invalid options, if the text is empty before or after normalization, or
  /// if its characters alone need a larger vocabulary.
  static Tokenizer train(const std::vector<std::string>& lines, const TokenizerOptions& options);

  /// The ids of a text, without special tokens.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;

  /// The ids of a text with the special tokens that the tokenizer itself adds: those of a `tokenizer.json`'s
  /// post-processor, or Marian's EOS.
  [[nodiscard]] std::vector<int32_t> encode_as_input(std::string_view text) const;

  /// Adds the same special tokens to ids without any, for texts that are cut to a length.
  [[nodiscard]] std::vector<int32_t> as_input(std::vector<int32_t> ids) const;

  /// The text of ids, without special tokens such as padding, mask, BOS and EOS; in SentencePiece models, an unknown
  /// token becomes " ⁇ ". Throws Error on an id outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;

  /// The piece of an id as stored in the vocabulary: "▁the". Throws Error on an id outside the vocabulary.
  [[nodiscard]] std::string piece(int32_t id) const;

  /// The id of a piece, or −1.
  [[nodiscard]] int32_t find(std::string_view piece) const;

  /// The ids of the special tokens. Models that Plumb did not train may lack some or have other ids.
  [[nodiscard]] const Specials& specials() const;

  /// The same tokenizer with other `specials()`. Does not affect which tokens `decode` drops, or `save_as_json`.
  [[nodiscard]] Tokenizer with_specials(const Specials& specials) const;

  /// The number of pieces, including special tokens; ids are less than this.
  [[nodiscard]] int64_t vocabulary() const;

  /// What determines the ids of texts, in some form: equal for tokenizers whose files differ only in what does not
  /// matter for ids, such as the length to which texts would be truncated.
  [[nodiscard]] std::string definition() const;

  /// Whether the file that `save` writes is the whole tokenizer. Marian's ids are in another file.
  [[nodiscard]] bool is_one_file() const;

  /// The model in its own format: SentencePiece's, or a `tokenizer.json`.
  [[nodiscard]] std::string serialized() const;

  /// Writes it atomically.
  void save(const std::filesystem::path& path) const;

  /// Writes a Hugging Face `tokenizer.json` and, beside it, the names of the special tokens. The post-processor adds
  /// `ends`, but one loaded from a `tokenizer.json` is kept if `ends.eos` is false, if BOS or EOS is missing, or if
  /// pairs have several separators. Throws Error if the format cannot express the tokenizer.
  void save_as_json(const std::filesystem::path& path, const TextEnds& ends = {}) const;

 private:
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  static Tokenizer from_serialized(std::string serialized, const std::string& name);

  std::shared_ptr<const Model> model_;
};

}  // namespace plumb
