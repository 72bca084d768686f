// Vocabularies of whole words, for language models of text that is already split into words (WikiText: Merity et al.,
// arXiv 1609.07843).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

/// A `tokenizer.json` with the most frequent words of the lines, split at white space and not normalized; among words
/// of equal frequency, the first in byte order. All others are unknown, and so is the word "<unk>" in a text.
/// `vocabulary` includes the special tokens: padding, BOS, EOS, unknown and, with `mask`, the mask token. Throws Error
/// if it leaves no room for words, or if the lines have none.
std::string word_tokenizer(const std::vector<std::string>& lines, int64_t vocabulary, bool mask);

}  // namespace plumb
