// Sections of the `tokenizer.json` files that Plumb writes.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/json.h"

namespace plumb::tokenization {

/// A token that is matched in the text; with `whole_word`, only if not next to word characters.
Json added_token(const std::string& content, int32_t id, bool special, bool whole_word = false);

/// A token and its id; an empty name means none.
struct NamedToken {
  std::string name;
  int32_t id = -1;
};

/// The post-processor that puts `before` in front of a text or pair, and `after` after each text; with `segments`, the
/// second text of a pair is segment 1. Null if there is neither token.
Json around_texts(const NamedToken& before, const NamedToken& after, bool segments);

}  // namespace plumb::tokenization
