// SentencePiece models in the form of Hugging Face's `tokenizer.json`.
#pragma once

#include <string>

#include "plumb/text/sentencepiece/content.h"
#include "plumb/text/specials.h"

namespace plumb {

/// The `tokenizer.json` with the same pieces, normalization and spaces; its post-processor puts `ends` around a text.
/// Unlike SentencePiece it recognizes special tokens that are written out in a text, such as "<s>". Throws Error if the
/// model has something that cannot be said there.
std::string tokenizer_json_of(const SentencePieceContent& content, const Specials& specials, const TextEnds& ends);

}  // namespace plumb
