// Tokenizers in the form of Hugging Face's `tokenizer.json`.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plumb/text/kinds/special_tokens.h"
#include "plumb/text/tokenizer_model.h"

namespace plumb {

/// The tokenizer that a document describes. `path` is the file that messages name; files beside it say which tokens are
/// padding, beginning and end (kinds/special_tokens.h). Throws Error that names the file and, if Plumb does not know a
/// component, the component.
std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const std::filesystem::path& path);

/// The same with tokens that are named here, for a document that is in no file yet.
std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const SpecialNames& names);

}  // namespace plumb
