// Components that the tokenizer classes of `transformers` 5 make themselves: of a tokenizer.json they take only the
// vocabulary, the merges, SentencePiece's compiled rules and, some of them, the post-processor.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// Special tokens by their keys, such as "pad_token": a string, or an object with its flags.
using NamedTokens = std::vector<std::pair<std::string, Json>>;

/// The content of the token with this key; throws Error if there is none.
std::string named_token(const NamedTokens& names, const std::string& key);

/// BERT's sections "normalizer", "pre_tokenizer", "decoder" and "model", with this vocabulary: ids by token.
nlohmann::json word_piece_components(const Json& settings, const std::string& unknown,
                                     const nlohmann::json& vocabulary);

struct TokenizerClass {
  NamedTokens defaults;  // tokens that the settings need not name, by the usual keys
  /// The sections "normalizer", "pre_tokenizer", "decoder" and "model", from those of the file, the settings of
  /// tokenizer_config.json and the special tokens. Throws Error if the file's vocabulary is of another kind.
  nlohmann::json (*components)(const nlohmann::json& file, const Json& settings, const NamedTokens& names);
  /// The post-processor; null: the file's. `id_of` gives the id of a token.
  nlohmann::json (*post_processor)(const Json& settings, const NamedTokens& names,
                                   const std::function<int64_t(const std::string&)>& id_of) = nullptr;
  /// Special tokens without a key, unless the settings list some; null: none.
  std::vector<Json> (*other_tokens)(const Json& settings) = nullptr;
  bool pads_as_file_says = false;  // the token for padding may be that of the file's section "padding"
};

/// The class with this name; null if Plumb does not know it.
const TokenizerClass* tokenizer_class_named(const std::string& name);

}  // namespace plumb
