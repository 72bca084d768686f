// Tokenizers: text to token ids and back.
// Byte-pair encoding: Sennrich et al., arXiv 1508.07909; unigram: Kudo, arXiv 1804.10959; both as implemented in
// SentencePiece (Kudo & Richardson, arXiv 1808.06226), which normalizes text by NFKC first. Whole words: text/words.h.
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
  bool mask = false;                // whether there is a special token "<mask>", for masked language modeling
  double character_coverage = 1.0;  // the fraction of character occurrences covered by pieces; the rest is unknown
  /// How many lines or pairs a tokenizer is trained on when data are prepared, evenly spaced in a larger text; 0: all.
  /// `Tokenizer::train` uses all that it is given.
  int64_t sample = 1'000'000;
};

/// An immutable tokenizer; copies share one model. Safe to use from several threads.
class Tokenizer {
 public:
  /// Throws Error if the file is missing or is no tokenizer that Plumb knows.
  static Tokenizer from_file(const std::filesystem::path& path);

  /// Learns the pieces from lines of text; equal input gives an equal model. A text that does not yield enough pieces
  /// gives a smaller vocabulary. Throws Error if the text is empty, before or after normalization, or if its characters
  /// alone need a larger vocabulary.
  static Tokenizer train(const std::vector<std::string>& lines, const TokenizerOptions& options);

  /// The ids of a text, without special tokens.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;

  /// The ids of a text with the special tokens that the tokenizer itself adds around it: those of the post-processor of
  /// a `tokenizer.json`.
  [[nodiscard]] std::vector<int32_t> encode_as_input(std::string_view text) const;

  /// The same special tokens around ids without any, for texts that are cut to a length.
  [[nodiscard]] std::vector<int32_t> as_input(std::vector<int32_t> ids) const;

  /// The text of ids; padding, mask, beginning and end of sentence are dropped, and an unknown token reads " ⁇ ".
  /// Throws Error on an id outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;

  /// The piece of an id as the vocabulary has it: "▁the". Throws Error on an id outside the vocabulary.
  [[nodiscard]] std::string piece(int32_t id) const;

  /// The id of a piece; −1 if the vocabulary does not have it.
  [[nodiscard]] int32_t find(std::string_view piece) const;

  /// The ids of the special tokens. A model trained with SentencePiece's own tools may lack some or have other ids.
  [[nodiscard]] const Specials& specials() const;

  /// The same tokenizer, which says that these are its special tokens; what `decode` drops does not change.
  [[nodiscard]] Tokenizer with_specials(const Specials& specials) const;

  /// The number of pieces, including special tokens: ids are below it.
  [[nodiscard]] int64_t vocabulary() const;

  /// Whether what `save` writes is the whole tokenizer. Marian's ids are in another file.
  [[nodiscard]] bool is_one_file() const;

  /// Writes the model atomically: in SentencePiece's own format, or words as a `tokenizer.json`.
  void save(const std::filesystem::path& path) const;

  /// Writes the tokenizer as a `tokenizer.json` of Hugging Face and, beside it, which tokens are special. Its
  /// post-processor puts those of `ends` around a text, unless the tokenizer has a post-processor of its own. Throws
  /// Error if it has something that cannot be said there.
  void save_as_json(const std::filesystem::path& path, const TextEnds& ends = {}) const;

 private:
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  static Tokenizer from_serialized(std::string serialized, const std::string& name);

  std::shared_ptr<const Model> model_;
};

}  // namespace plumb
