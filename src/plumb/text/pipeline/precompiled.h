// SentencePiece's compiled normalization rules: a double-array trie from byte strings to their replacements
// (Kudo & Richardson, arXiv 1808.06226), applied as Hugging Face's `tokenizers` applies them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::tokenization {

class PrecompiledRules {
 public:
  /// `base64` encodes the size of the trie in bytes (4 bytes, little-endian), the trie, and the replacements, each
  /// zero-terminated. Throws Error if it is damaged.
  explicit PrecompiledRules(const std::string& base64);

  /// Replaces each grapheme cluster of fewer than 6 bytes by the shortest rule that is a prefix of it; if there is
  /// none, and in longer clusters, does the same to each character. `beginning` is a number of the text's first bytes,
  /// and is set to that of the bytes that they become.
  [[nodiscard]] std::string apply(std::string_view text, size_t& beginning) const;

 private:
  [[nodiscard]] std::optional<std::string_view> replacement(std::string_view chunk) const;
  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace plumb::tokenization
