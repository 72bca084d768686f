// Text in UTF-8, byte by byte and character by character (code points).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// Whether a byte is the second, third or fourth of a character.
constexpr bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The byte offset at which the character begins that contains the byte at `position`, or `position` at the end.
constexpr size_t beginning_of_character(std::string_view text, size_t position) {
  while (position > 0 && position < text.size() && is_continuation(text[position])) --position;
  return position;
}

/// The first offset from `position` on at which a character begins, or the size of the text.
constexpr size_t next_beginning(std::string_view text, size_t position) {
  while (position < text.size() && is_continuation(text[position])) ++position;
  return position;
}

/// The number of characters in well-formed text.
constexpr size_t characters_in(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += is_continuation(byte) ? 0 : 1;
  return count;
}

/// What decoded_character() returns for malformed bytes; no character has this number.
inline constexpr char32_t kMalformed = 0xFFFFFFFF;

/// The character at `position`, which advances past it; for malformed bytes (overlong forms and surrogates, too),
/// kMalformed, and `position` advances past the longest beginning of a character.
constexpr char32_t decoded_character(std::string_view text, size_t& position) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte_at(position++);
  if (first < 0x80) return first;
  if (first < 0xC2 || first > 0xF4) return kMalformed;
  const int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  // The second byte has a smaller range after these first bytes: other forms would be overlong, surrogates, or beyond
  // U+10FFFF.
  unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  char32_t character = first & (0x3FU >> more);
  for (int i = 0; i < more; ++i) {
    if (position == text.size() || byte_at(position) < least || byte_at(position) > most) return kMalformed;
    character = character << 6 | (byte_at(position++) & 0x3FU);
    least = 0x80;
    most = 0xBF;
  }
  return character;
}

/// The same, with U+FFFD for malformed bytes.
constexpr char32_t next_character(std::string_view text, size_t& position) {
  const char32_t character = decoded_character(text, position);
  return character == kMalformed ? U'\uFFFD' : character;
}

/// Whether `text` is well-formed (no overlong forms, no surrogates).
constexpr bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (decoded_character(text, i) == kMalformed) return false;
  }
  return true;
}

/// Appends a character, which must be at most U+10FFFF.
inline void append_character(std::string& text, char32_t character) {
  const int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr unsigned char kFirst[] = {0x00, 0xC0, 0xE0, 0xF0};
  text.push_back(static_cast<char>(kFirst[more] | character >> (6 * more)));
  for (int left = more - 1; left >= 0; --left)
    text.push_back(static_cast<char>(0x80 | (character >> (6 * left) & 0x3F)));
}

/// `text` with each longest malformed beginning of a character replaced by U+FFFD.
inline std::string repaired_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (size_t i = 0; i < text.size();) append_character(repaired, next_character(text, i));
  return repaired;
}

/// `text` without a byte-order mark at its beginning.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

}  // namespace plumb
