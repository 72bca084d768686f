// GPT-2's byte alphabet: maps every byte to a printable character, so that any text consists of 256 characters (Radford
// et al. 2019). Printable bytes of Latin-1 map to themselves, and the others, in order, to U+0100, U+0101, …
#pragma once

#include <string>
#include <string_view>

namespace plumb::tokenization {

/// The characters of the bytes of `text`.
std::string bytes_as_characters(std::string_view text);

/// The byte of a character; -1 if it is not in the alphabet.
int byte_of_character(char32_t character);

}  // namespace plumb::tokenization
