// Added tokens: tokens such as "<|endoftext|>" that are matched in the text before anything else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumb/text/pipeline/byte_trie.h"
#include "plumb/text/pipeline/components.h"

namespace plumb::tokenization {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // matches only if not next to word characters
  bool left = false;         // includes white space before it
  bool right = false;        // includes white space after it
  bool normalized = true;    // matched in normalized text, in its own normalized form
  bool special = false;      // omitted from decoded text
  std::string matched = {};  // what is matched: the content or, if `normalized`, its normalized form
  std::string decoded = {};  // what it is in decoded text
};

/// The added tokens of a tokenizer.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// From the list "added_tokens". As in `tokenizers`, a token of the vocabulary keeps its id, others get the next ones
  /// after the number of tokens, and the ids in the list are ignored. Of a token that is listed twice the last flags
  /// hold, but once special, it stays special, and once normalized, its normalized form is what decoded text contains.
  /// A special token whose decoded form is not its content is not omitted. Throws Error or a JSON exception on invalid
  /// entries.
  AddedTokens(const nlohmann::json& list, const Vocabulary& vocabulary, const Normalize& normalize);

  /// The text, cut at added tokens and normalized; no piece is empty. Throws Error if it grows too long.
  [[nodiscard]] std::vector<Piece> cut(std::string text) const;

  /// The added token with this id, or null.
  [[nodiscard]] const AddedToken* find(int32_t id) const;
  /// The id of the added token with this content, or -1.
  [[nodiscard]] int32_t find(const std::string& content) const;
  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  void cut_piece(Piece piece, const ByteTrie& trie, std::vector<Piece>& pieces) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, int32_t> ids_;
  ByteTrie verbatim_, normalized_;  // → index in tokens_
  Normalize normalize_;
};

}  // namespace plumb::tokenization
