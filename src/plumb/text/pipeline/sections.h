// Sections of a `tokenizer.json`, for the tokenizers that Plumb writes.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/json.h"

namespace plumb::tokenization {

/// A token that is found in the text itself; with `whole_word` only where no letter or digit is next to it.
Json added_token(const std::string& content, int32_t id, bool special, bool whole_word = false);

/// The post-processor that puts BOS before a text, and before a pair of texts.
Json bos_before_text(const std::string& bos, int32_t id);

}  // namespace plumb::tokenization
