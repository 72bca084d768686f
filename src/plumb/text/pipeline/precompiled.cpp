#include "plumb/text/pipeline/precompiled.h"

#include <bit>
#include <cstring>
#include <optional>

#include "plumb/base/base64.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {
namespace {

Error damaged() { return Error("'precompiled_charsmap' is damaged"); }

// A unit of the double array. A leaf: bits 0-30 are the value. Others: bits 0-7 and 31 are the label, bit 8 tells
// whether there is a leaf, and bits 10-31 are the offset, to be shifted left by 8 if bit 9 is set.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t label_of(uint32_t unit) { return unit & ((1U << 31) | 0xFF); }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

}  // namespace

PrecompiledRules::PrecompiledRules(const std::string& base64) {
  static_assert(std::endian::native == std::endian::little);
  const std::optional<std::string> decoded = bytes_of_base64(base64);
  if (!decoded) throw damaged();
  const std::string& bytes = *decoded;
  uint32_t size = 0;
  if (bytes.size() < sizeof size) throw damaged();
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - sizeof size) throw damaged();
  trie_.resize(size / 4);
  std::memcpy(trie_.data(), bytes.data() + sizeof size, size);
  replacements_ = bytes.substr(sizeof size + size);
  if (!is_valid_utf8(replacements_)) throw damaged();
}

std::optional<std::string_view> PrecompiledRules::replacement(std::string_view chunk) const {
  size_t node = offset_of(trie_[0]);
  for (const char c : chunk) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= trie_.size() || label_of(trie_[node]) != byte) return std::nullopt;
    const uint32_t unit = trie_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= trie_.size()) return std::nullopt;
    const size_t begin = trie_[node] & 0x7FFFFFFF;
    if (begin >= replacements_.size())
      return begin == replacements_.size() ? std::optional(std::string_view()) : std::nullopt;
    return std::string_view(replacements_.c_str() + begin);
  }
  return std::nullopt;
}

void PrecompiledRules::replace_characters(std::string_view cluster, std::string& result) const {
  for (size_t i = 0; i < cluster.size();) {
    const size_t begin = i;
    next_character(cluster, i);
    const std::string_view character = cluster.substr(begin, i - begin);
    result.append(replacement(character).value_or(character));
  }
}

std::string PrecompiledRules::apply(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  const std::vector<size_t> boundaries = grapheme_boundaries(text);
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const std::string_view cluster = text.substr(boundaries[i], boundaries[i + 1] - boundaries[i]);
    const auto whole = cluster.size() < 6 ? replacement(cluster) : std::nullopt;
    if (whole) {
      result.append(*whole);
    } else {
      replace_characters(cluster, result);
    }
  }
  if (!is_valid_utf8(result)) return repaired_utf8(result);  // a replacement that starts within a character
  return result;
}

}  // namespace plumb::tokenization
