// Tokens "<0x00>" … "<0xFF>" for the bytes of characters that a vocabulary lacks (byte fallback).
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

  /// Appends a token for each byte; returns false, and appends nothing, if one is missing.
  [[nodiscard]] bool append(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

/// The byte of a token "<0x…>"; -1 for other tokens.
int byte_of_token(std::string_view token);

}  // namespace plumb::tokenization
