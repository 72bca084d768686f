// Marian's tokenizers: one SentencePiece model per language, source.spm and target.spm, with token ids in vocab.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/text/tokenizer_model.h"

namespace plumb {

/// Whether the file is named source.spm or target.spm and has a vocab.json beside it.
bool is_marian(const std::filesystem::path& path);

/// Pieces that the vocabulary lacks are unknown. A language code at the beginning of a text, ">>deu<<", is one token.
/// The ids for target.spm come from target_vocab.json if that exists. Throws Error naming the file if it is damaged.
std::shared_ptr<const TokenizerModel> make_marian(std::string bytes, const std::filesystem::path& path);

}  // namespace plumb
