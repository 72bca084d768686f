// Sections of a `tokenizer.json`, for the tokenizers that Plumb writes.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/json.h"

namespace plumb::tokenization {

/// A token that is found in the text itself; with `whole_word` only where no letter or digit is next to it.
Json added_token(const std::string& content, int32_t id, bool special, bool whole_word = false);

/// A token and its id; without a name: none.
struct NamedToken {
  std::string name;
  int32_t id = -1;
};

/// The post-processor that puts one token before a text, or a pair of texts, and one after each, and with `segments`
/// marks the second text of a pair as 1; null without a token.
Json around_texts(const NamedToken& before, const NamedToken& after, bool segments);

}  // namespace plumb::tokenization
