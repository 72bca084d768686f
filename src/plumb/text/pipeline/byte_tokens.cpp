#include "plumb/text/pipeline/byte_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace plumb::tokenization {

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte)
    ids_[static_cast<size_t>(byte)] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
}

bool ByteTokens::append(std::string_view text, std::vector<int32_t>& ids) const {
  const auto id_of = [this](char c) { return ids_[static_cast<unsigned char>(c)]; };
  if (std::any_of(text.begin(), text.end(), [&](char c) { return id_of(c) < 0; })) return false;
  for (const char c : text) ids.push_back(id_of(c));
  return true;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return -1;
  unsigned byte = 0;
  const char* const end = token.data() + 5;
  const char* const begin = token.data() + (token[3] == '+' ? 4 : 3);
  const auto [stop, error] = std::from_chars(begin, end, byte, 16);
  return error == std::errc() && stop == end ? static_cast<int>(byte) : -1;
}

}  // namespace plumb::tokenization
