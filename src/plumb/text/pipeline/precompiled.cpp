#include "plumb/text/pipeline/precompiled.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plumb/base/base64.h"
#include "plumb/base/error.h"
#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {
namespace {

Error damaged() { return Error("'precompiled_charsmap' is damaged"); }

// A unit of the double array. A leaf: bits 0-30 are the value. Others: bits 0-7 and 31 are the label, bit 8 tells
// whether there is a leaf, and bits 10-31 are the offset, to be shifted left by 8 if bit 9 is set.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t label_of(uint32_t unit) { return unit & ((1U << 31) | 0xFF); }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

/// What becomes of the first characters of a text. As in `tokenizers`, a replacement takes its characters one by one
/// from those that it replaces. Further ones come from the last of these; characters that are left over count to the
/// last character before them. At the beginning of the text, where no character precedes, those after them move up.
class BeginningOfResult {
 public:
  explicit BeginningOfResult(size_t characters) : characters_(characters) {}

  void replace(std::string_view part, std::string_view replacement) {
    if (taken_ > characters_) return;
    auto left = static_cast<int64_t>(characters_in(part));
    for (size_t i = 0; i < replacement.size(); --left) {
      const size_t begin = i;
      next_character(replacement, i);
      finish_last();
      last_ = i - begin;
      takes_ = left > 0 ? 1 : 0;
    }
    if (left > 0 && last_ > 0) takes_ += left;
  }

  /// The bytes of the result, once all parts are replaced.
  [[nodiscard]] size_t bytes() {
    finish_last();
    return bytes_;
  }

 private:
  void finish_last() {
    const size_t source = takes_ > 0 ? taken_ : std::max<size_t>(taken_, 1) - 1;
    if (source < characters_) bytes_ += last_;
    taken_ += static_cast<size_t>(takes_);
    last_ = 0;
    takes_ = 0;
  }

  size_t characters_;
  size_t taken_ = 0;   // characters of the text so far
  size_t bytes_ = 0;   // of the result
  size_t last_ = 0;    // bytes of the last character of the result; 0: none
  int64_t takes_ = 0;  // how many characters it comes from; 0: the same as the one before
};

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

std::string PrecompiledRules::apply(std::string_view text, size_t& beginning) const {
  std::string result;
  result.reserve(text.size());
  BeginningOfResult of_result(characters_in(text.substr(0, beginning)));
  const auto replace = [&](std::string_view part, std::string_view by) {
    result.append(by);
    check_growth(text.size(), result.size());
    if (beginning > 0) of_result.replace(part, by);
  };
  const std::vector<size_t> boundaries = grapheme_boundaries(text);
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const std::string_view cluster = text.substr(boundaries[i], boundaries[i + 1] - boundaries[i]);
    const auto whole = cluster.size() < 6 ? replacement(cluster) : std::nullopt;
    if (whole) {
      replace(cluster, *whole);
      continue;
    }
    for (size_t at = 0; at < cluster.size();) {
      const size_t begin = at;
      next_character(cluster, at);
      const std::string_view character = cluster.substr(begin, at - begin);
      replace(character, replacement(character).value_or(character));
    }
  }
  beginning = of_result.bytes();
  if (!is_valid_utf8(result)) return repaired_utf8(result);  // a replacement that starts within a character
  return result;
}

}  // namespace plumb::tokenization
