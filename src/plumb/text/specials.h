// The special tokens of a vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plumb/base/error.h"

namespace plumb {

/// Ids of the special tokens, and how they join a pair; -1: the vocabulary lacks the token. The defaults are those of
/// tokenizers trained by Plumb.
struct Specials {
  int32_t pad = 0, bos = 1, eos = 2, unknown = 3;
  int32_t mask = -1;  // replaces a token that a masked language model predicts
  /// Number of EOS between the two texts of a pair; 2 for RoBERTa.
  int32_t separators = 1;

  /// True for padding, BOS, EOS and the mask, which are not text.
  [[nodiscard]] bool is_control(int32_t id) const {
    return id >= 0 && (id == pad || id == bos || id == eos || id == mask);
  }

  bool operator==(const Specials&) const = default;
};

/// What a model reads in addition to a text.
struct TextEnds {
  bool bos = true;        // before the text
  bool eos = false;       // after it
  bool segments = false;  // for pairs of texts: the index of each token's text
};

/// Returns `id`; throws Error if it is -1. `name` is the token's name in the message, such as "end of a sentence".
inline int32_t require_special(int32_t id, std::string_view name) {
  if (id >= 0) return id;
  throw Error("the tokenizer has no token for the " + std::string(name), "use a tokenizer that has one");
}

/// The token that precedes a text: BOS, or EOS if the vocabulary has no BOS (Qwen). Throws Error if it has neither.
inline int32_t token_before_text(const Specials& specials) {
  return require_special(specials.bos >= 0 ? specials.bos : specials.eos, "beginning or the end of a text");
}

}  // namespace plumb
