// Token masking for masked language models: Devlin et al. 2019, "BERT", arXiv 1810.04805, section 3.1. Whole-word
// masking: the authors' later release; dynamic masking: Liu et al. 2019, "RoBERTa", arXiv 1907.11692.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/random.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

/// Which tokens are chosen for prediction.
struct Masking {
  double share = 0.15;
  bool whole_words = false;
};

/// Masks sequences of one vocabulary.
class Masker {
 public:
  /// 0 < share ≤ 1. Throws Error if the vocabulary has no mask token or only special tokens.
  Masker(const Tokenizer& tokenizer, const Masking& masking);

  /// Replaces tokens of a nonempty sequence and returns the chosen positions in ascending order. Of n tokens (or words)
  /// of text, max(1, round(share·n)) are chosen, all such sets with equal probability; each chosen token becomes the
  /// mask with probability 0.8, a random ordinary token with probability 0.1, and otherwise stays. BOS, EOS, padding
  /// and the mask are not text: they are never chosen, unless the sequence has nothing else; then its first token is.
  std::vector<int64_t> mask(std::vector<int64_t>& tokens, Random& random) const;

 private:
  /// Consecutive positions that are chosen together: begin, …, end − 1.
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

/// Whether each token of a vocabulary begins a word: decoding it after another token puts a space between them. True
/// for special tokens.
std::vector<bool> word_beginnings(const Tokenizer& tokenizer);

}  // namespace plumb
