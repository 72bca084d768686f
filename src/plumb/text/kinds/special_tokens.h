// Which tokens of a Hugging Face model are padding, beginning, end, unknown and mask, according to
// `tokenizer_config.json` and `special_tokens_map.json`.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/base/json.h"

namespace plumb {

/// The tokens by name; empty: none.
struct SpecialNames {
  std::string pad, bos, eos, unknown, mask;
  bool operator==(const SpecialNames&) const = default;
};

/// The JSON object in a file; an empty one if there is no such file. Throws Error if it is anything else.
Json object_in(const std::filesystem::path& path);

/// The content of a token that is given as a string or as an object; empty if it is neither.
std::string content_of(const Json& token);

/// The keys of special tokens, in the order in which `transformers` adds them. A model may have others, which end
/// alike.
inline constexpr const char* kUsualTokenKeys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                  "pad_token", "cls_token", "mask_token"};
bool is_other_token_key(const std::string& key);

/// The settings beside a tokenizer's file: NAME_config.json for NAME.json, otherwise tokenizer_config.json; an empty
/// object if there is no such file. As in `transformers`, tokens in special_tokens_map.json replace those of
/// tokenizer_config.json unless that has "added_tokens_decoder"; those with other keys come first, and only if it has
/// no string for them. Throws Error if a file cannot be read.
Json settings_beside(const std::filesystem::path& tokenizer);

/// The names in `settings_beside`. If they lack tokens for beginning and end, `cls_token` and `sep_token` are used
/// instead.
SpecialNames special_names_beside(const std::filesystem::path& tokenizer);

/// Writes the names where `special_names_beside` finds them, unless all are empty.
void write_special_names(const std::filesystem::path& tokenizer, const SpecialNames& names);

/// Writes, besides the names, what `transformers` would otherwise infer from the kind of model: that `tokenizer.json`
/// defines the tokenizer, and whether the model reads `segments`.
void write_settings_for_transformers(const std::filesystem::path& tokenizer, const SpecialNames& names, bool segments);

}  // namespace plumb
