// Which tokens of a Hugging Face model are padding, beginning, end, unknown and mask: `tokenizer_config.json` and
// `special_tokens_map.json` say so.
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

/// The settings beside the file of a tokenizer: for NAME.json those of NAME_config.json; an empty object if there are
/// none. Throws Error if they cannot be read.
nlohmann::json settings_beside(const std::filesystem::path& tokenizer);

/// The names in the files beside `tokenizer`. A model without tokens for beginning and end has its `cls_token` and
/// `sep_token` there.
SpecialNames special_names_beside(const std::filesystem::path& tokenizer);

/// Writes names so that `special_names_beside` finds them, unless all are empty.
void write_special_names(const std::filesystem::path& tokenizer, const SpecialNames& names);

/// Writes, with the names, what `transformers` otherwise assumes from the kind of the model: that the tokenizer is what
/// its `tokenizer.json` says, and whether the model reads `segments`.
void write_settings_for_transformers(const std::filesystem::path& tokenizer, const SpecialNames& names, bool segments);

}  // namespace plumb
