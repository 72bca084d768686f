// Added tokens: tokens that are found in the text before anything else, such as "<|endoftext|>".
#pragma once

#include <functional>
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
  bool single_word = false;  // only between characters that do not belong to words
  bool left = false;         // takes the white space before it
  bool right = false;        // takes the white space after it
  bool normalized = true;    // is found in the normalized text, in its own normalized form
  bool special = false;      // is left out of decoded text
};

/// The added tokens of a tokenizer.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// From the list "added_tokens". A token of the vocabulary keeps its id, and others get the next free one, as in
  /// `tokenizers`: the ids in the list do not count. Throws Error or a JSON exception on invalid entries.
  AddedTokens(const nlohmann::json& list, const Vocabulary& vocabulary, const Normalize& normalize);

  /// The text cut at added tokens, and normalized; no piece is empty.
  [[nodiscard]] std::vector<Piece> cut(std::string text) const;

  /// Null if the id is not that of an added token.
  [[nodiscard]] const AddedToken* find(int32_t id) const;
  /// The id of an added token, or -1 if the text is not one.
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
