// GPT-2's alphabet of bytes: every byte as one printable character, so that any text consists of characters of a small
// alphabet (Radford et al. 2019). Printable bytes of Latin-1 stand for themselves, and the others, in order, for
// U+0100, U+0101, …
#pragma once

#include <string>
#include <string_view>

namespace plumb::tokenization {

/// The characters of the bytes of `text`.
std::string bytes_as_characters(std::string_view text);

/// The character of a byte.
char32_t character_of_byte(unsigned char byte);

/// The byte of a character; -1 if it stands for none.
int byte_of_character(char32_t character);

}  // namespace plumb::tokenization
