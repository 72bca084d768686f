// Tokenizers in the format of Hugging Face's `tokenizer.json`.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plumb/text/kinds/special_tokens.h"
#include "plumb/text/tokenizer_model.h"

namespace plumb {

/// The tokenizer that a document describes. `path` is the file to name in messages; files beside it define which tokens
/// are padding, beginning and end (kinds/special_tokens.h) and, if it is a model's tokenizer.json, how it is read
/// (kinds/transformers_reading.h). Throws Error naming the file and any unknown component.
std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const std::filesystem::path& path);

/// The same with the special tokens in `names`, for a document that is not in a file yet.
std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const SpecialNames& names);

}  // namespace plumb
