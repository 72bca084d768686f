// Which tokens of a Hugging Face model are padding, beginning, end, unknown and mask, according to
// `tokenizer_config.json` and `special_tokens_map.json`.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/base/error.h"
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

/// A setting such as "do_lower_case"; `otherwise` if it is absent or null. Throws Error if it has another type.
template <typename Value>
Value setting_or(const Json& settings, const char* name, Value otherwise) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->is_null()) return otherwise;
  try {
    return found->template get<Value>();
  } catch (const Json::exception&) {
    throw Error(std::string("the setting '") + name + "' has the wrong type");
  }
}

/// The names in `settings_beside`. If they lack tokens for beginning and end, `cls_token` and `sep_token` are used
/// instead.
SpecialNames special_names_beside(const std::filesystem::path& tokenizer);

/// Writes the names where `special_names_beside` finds them, unless all are empty.
void write_special_names(const std::filesystem::path& tokenizer, const SpecialNames& names);

/// Writes, besides the names, what `transformers` would otherwise infer from the kind of model: that `tokenizer.json`
/// defines the tokenizer, and whether the model reads `segments`.
void write_settings_for_transformers(const std::filesystem::path& tokenizer, const SpecialNames& names, bool segments);

}  // namespace plumb
