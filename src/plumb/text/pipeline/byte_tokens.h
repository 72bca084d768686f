// Tokens "<0x00>" … "<0xFF>", which stand for bytes of text that a vocabulary lacks (byte fallback).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plumb/text/pipeline/vocabulary.h"

namespace plumb::tokenization {

class ByteTokens {
 public:
  ByteTokens() { ids_.fill(-1); }
  explicit ByteTokens(const Vocabulary& vocabulary);

  /// Appends a token for each byte, or returns false if one is missing.
  [[nodiscard]] bool append(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

/// The byte that a token stands for; -1 if it is an ordinary token.
int byte_of_token(std::string_view token);

}  // namespace plumb::tokenization
