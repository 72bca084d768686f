// Which tokens of a Hugging Face model are padding, beginning, end, unknown and mask, according to
// `tokenizer_config.json` and `special_tokens_map.json`.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plumb {

/// The tokens by name; empty: none.
struct SpecialNames {
  std::string pad, bos, eos, unknown, mask;
  bool operator==(const SpecialNames&) const = default;
};

/// The settings beside a tokenizer's file: NAME_config.json for NAME.json, otherwise tokenizer_config.json; an empty
/// object if there is no such file. Throws Error if it cannot be read.
nlohmann::json settings_beside(const std::filesystem::path& tokenizer);

/// The names in the files beside `tokenizer`. If they lack tokens for beginning and end, `cls_token` and `sep_token`
/// are used instead.
SpecialNames special_names_beside(const std::filesystem::path& tokenizer);

/// Writes the names where `special_names_beside` finds them, unless all are empty.
void write_special_names(const std::filesystem::path& tokenizer, const SpecialNames& names);

/// Writes, besides the names, what `transformers` would otherwise infer from the kind of model: that `tokenizer.json`
/// defines the tokenizer, and whether the model reads `segments`.
void write_settings_for_transformers(const std::filesystem::path& tokenizer, const SpecialNames& names, bool segments);

}  // namespace plumb
