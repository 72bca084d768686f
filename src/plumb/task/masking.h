// Masking, the corruption that a masked language model undoes: Devlin et al. 2019, "BERT", arXiv 1810.04805,
// section 3.1. Whole words: the authors' later release; masks drawn anew: Liu et al. 2019, "RoBERTa", arXiv 1907.11692.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/random.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// Which tokens are chosen, and what replaces them.
struct Masking {
  double share = 0.15;  // of the tokens that are chosen, or of the words
  bool whole_words = false;
};

/// Masks sequences of one vocabulary.
class Masker {
 public:
  /// Throws Error if `share` is not in (0, 1], or if the vocabulary lacks a mask or has no token that is text.
  Masker(const Tokenizer& tokenizer, const Masking& masking);

  /// Replaces tokens of a sequence that is not empty, and returns the chosen places in ascending order. Of n tokens (or
  /// words) of text, max(1, round(share·n)) are chosen, all sets of them with the same probability; each token chosen
  /// becomes the mask with probability 0.8, any token of text with probability 0.1, and else stays. BOS, EOS and
  /// padding are not text: they are never chosen, unless the sequence has nothing else; then its first token is.
  std::vector<int64_t> mask(std::vector<int64_t>& tokens, Random& random) const;

 private:
  /// Consecutive places that are chosen together.
  struct Unit {
    int64_t begin = 0, end = 0;
  };
  [[nodiscard]] std::vector<Unit> units_of(const std::vector<int64_t>& tokens) const;
  [[nodiscard]] int64_t random_text(Random& random) const;

  Masking masking_;
  Specials specials_;
  int64_t vocabulary_;
  std::vector<int32_t> not_text_;  // ids of special tokens, ascending
  std::vector<bool> begins_word_;  // by id, if whole words are masked
};

/// For each token of a vocabulary whether it begins a word, that is, whether a space separates it from a token before
/// it when both are decoded. True for special tokens.
std::vector<bool> word_beginnings(const Tokenizer& tokenizer);

}  // namespace plumb
