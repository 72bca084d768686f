// Converts SentencePiece models to Hugging Face's `tokenizer.json`.
#pragma once

#include <string>

#include "plumb/text/sentencepiece/content.h"
#include "plumb/text/specials.h"

namespace plumb {

/// A `tokenizer.json` with the same pieces, normalization and spaces; its post-processor adds `ends` to a text. Unlike
/// SentencePiece, it recognizes special tokens spelled out in a text, such as "<s>". Throws Error if the format cannot
/// express the model.
std::string tokenizer_json_of(const SentencePieceContent& content, const Specials& specials, const TextEnds& ends);

}  // namespace plumb
