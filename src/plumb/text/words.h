// A vocabulary of whole words, as language models of text that is cut into words already have it (WikiText: Merity et
// al., arXiv 1609.07843).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

/// The most frequent words of the lines, which end at white space and are taken as they are, as a `tokenizer.json`;
/// among words of equal frequency, the first in the order of their bytes. All others are unknown, and so is a word
/// "<unk>" in the text. `vocabulary` counts the special tokens: padding, BOS, EOS, unknown and, with `mask`, the mask
/// token. Throws Error if it has no place for a word, or the lines have none.
std::string word_tokenizer(const std::vector<std::string>& lines, int64_t vocabulary, bool mask);

}  // namespace plumb
