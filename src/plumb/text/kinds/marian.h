// Marian's tokenizers: a SentencePiece model for each language, source.spm and target.spm, whose pieces have the ids
// that vocab.json gives them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plumb/text/tokenizer_model.h"

namespace plumb {

/// Whether the file is named source.spm or target.spm and has a vocab.json beside it.
bool is_marian(const std::filesystem::path& path);

/// Pieces that the vocabulary does not have are unknown. A language code at the beginning of a text, ">>deu<<", is one
/// token. The ids of target.spm are those of target_vocab.json if there is one. Throws Error that names the file if it
/// is damaged.
std::shared_ptr<const TokenizerModel> make_marian(std::string bytes, const std::filesystem::path& path);

}  // namespace plumb
