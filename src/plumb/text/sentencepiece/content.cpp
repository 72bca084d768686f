#include "plumb/text/sentencepiece/content.h"

#include <cstring>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// A field of a message; its value is a number of up to 64 bits, or bytes.
struct Field {
  uint64_t number = 0;  // field number
  uint64_t value = 0;
  std::string_view bytes;
};

[[noreturn]] void damaged() { throw Error("the SentencePiece model is damaged"); }

/// The fields of a message, in the wire format of protocol buffers.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  /// Reads the next field; returns false at the end.
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t key = variable();
    field = {key >> 3, 0, {}};
    switch (key & 7) {
      case 0:
        field.value = variable();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = taken(variable());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        damaged();
    }
    return true;
  }

 private:
  std::string_view taken(uint64_t size) {
    if (size > rest_.size()) damaged();
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  /// A varint: seven bits per byte, lowest first; the eighth bit tells whether another byte follows.
  uint64_t variable() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(taken(1).front());
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    damaged();
  }

  /// A little-endian number of `size` bytes.
  uint64_t fixed(uint64_t size) {
    uint64_t value = 0;
    const std::string_view bytes = taken(size);
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return value;
  }

  std::string_view rest_;
};

float float_of(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

SentencePieceContent::Piece read_piece(std::string_view bytes) {
  SentencePieceContent::Piece piece;
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = float_of(field.value);
    if (field.number == 3) piece.type = static_cast<SentencePieceContent::Type>(field.value);
  }
  return piece;
}

void read_training(std::string_view bytes, SentencePieceContent& content) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 3) content.algorithm = static_cast<SentencePieceContent::Algorithm>(field.value);
    if (field.number == 24) content.space_as_suffix = field.value != 0;
    if (field.number == 35) content.byte_fallback = field.value != 0;
  }
}

void read_normalization(std::string_view bytes, SentencePieceContent& content) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 2) content.character_map = field.bytes;
    if (field.number == 3) content.leading_space = field.value != 0;
    if (field.number == 4) content.single_spaces = field.value != 0;
    if (field.number == 5) content.escapes_spaces = field.value != 0;
  }
}

}  // namespace

SentencePieceContent read_sentence_piece(std::string_view serialized) {
  SentencePieceContent content;
  Message message(serialized);
  for (Field field; message.next(field);) {
    if (field.number == 1) content.pieces.push_back(read_piece(field.bytes));
    if (field.number == 2) read_training(field.bytes, content);
    if (field.number == 3) read_normalization(field.bytes, content);
  }
  return content;
}

}  // namespace plumb
