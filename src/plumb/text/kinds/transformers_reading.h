// A tokenizer.json as `transformers` reads it (version 5): beside the file, tokenizer_config.json, added_tokens.json,
// special_tokens_map.json and config.json say which tokens are added and which class reads it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace plumb {

/// The document that gives the ids and texts of `transformers` by itself, without the files beside it: its components
/// are those of the tokenizer class (kinds/tokenizer_class.h), and its added tokens include those that only the other
/// files name. "truncation" and "padding", which Plumb ignores, are null. `path` is that of the file, and `bytes` its
/// content. Throws Error or a JSON exception if a file is malformed or asks for something that Plumb cannot do.
nlohmann::json as_transformers_reads(std::string_view bytes, const std::filesystem::path& path);

}  // namespace plumb
