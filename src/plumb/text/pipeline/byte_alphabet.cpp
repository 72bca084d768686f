#include "plumb/text/pipeline/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "plumb/base/utf8.h"

namespace plumb::tokenization {
namespace {

struct ByteAlphabet {
  std::array<int16_t, 512> bytes;  // by character, below U+0200
  std::array<std::string, 256> utf8;
};

ByteAlphabet make_byte_alphabet() {
  ByteAlphabet alphabet{};
  alphabet.bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const char32_t c = printable ? static_cast<char32_t>(byte) : next++;
    alphabet.bytes[c] = static_cast<int16_t>(byte);
    append_character(alphabet.utf8[byte], c);
  }
  return alphabet;
}

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet = make_byte_alphabet();
  return alphabet;
}

}  // namespace

std::string bytes_as_characters(std::string_view text) {
  const ByteAlphabet& alphabet = byte_alphabet();
  std::string characters;
  characters.reserve(text.size() * 2);
  for (const char c : text) characters += alphabet.utf8[static_cast<unsigned char>(c)];
  return characters;
}

int byte_of_character(char32_t character) { return character < 512 ? byte_alphabet().bytes[character] : -1; }

}  // namespace plumb::tokenization
