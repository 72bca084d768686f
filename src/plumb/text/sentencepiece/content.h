// The content of a SentencePiece model: its pieces and its normalization.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

struct SentencePieceContent {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;  // unigram: log-probability; byte-pair encoding: higher scores are merged first
    Type type = Type::normal;
  };
  enum class Algorithm { unigram = 1, byte_pair = 2, word = 3, character = 4 };

  std::vector<Piece> pieces;  // by id
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;
  std::string character_map;  // normalization rules, in SentencePiece's compiled format
  bool leading_space = true;  // adds a space before every text
  bool single_spaces = true;  // removes spaces around a text, and collapses those within
  bool escapes_spaces = true;
  bool space_as_suffix = false;
};

/// Reads a serialized model, a protocol-buffer message (sentencepiece_model.proto of Kudo & Richardson, arXiv
/// 1808.06226). Throws Error if it is damaged.
SentencePieceContent read_sentence_piece(std::string_view serialized);

}  // namespace plumb
