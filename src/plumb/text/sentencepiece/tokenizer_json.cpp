#include "plumb/text/sentencepiece/tokenizer_json.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "plumb/base/base64.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/sections.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace {

using Piece = SentencePieceContent::Piece;
using Type = SentencePieceContent::Type;

/// Throws Error if the model has settings that `tokenizer.json` cannot express.
void require_expressible(const SentencePieceContent& content) {
  const auto refuse = [](const char* what) {
    throw Error(std::string("the SentencePiece model cannot be written as a tokenizer.json: ") + what);
  };
  if (content.algorithm != SentencePieceContent::Algorithm::unigram &&
      content.algorithm != SentencePieceContent::Algorithm::byte_pair)
    refuse("it is neither a unigram model nor byte-pair encoding");
  if (content.space_as_suffix) refuse("it appends spaces to words");
  if (!content.escapes_spaces) refuse("it does not escape spaces");
}

bool is_special(const Piece& piece) { return piece.type == Type::control || piece.type == Type::unknown; }

Json added_tokens(const SentencePieceContent& content) {
  Json tokens = Json::array();
  for (size_t id = 0; id < content.pieces.size(); ++id) {
    const Piece& piece = content.pieces[id];
    if (!is_special(piece) && piece.type != Type::user_defined) continue;
    tokens.push_back(tokenization::added_token(piece.text, static_cast<int32_t>(id), is_special(piece)));
  }
  return tokens;
}

Json normalizer(const SentencePieceContent& content) {
  Json steps = Json::array();
  if (!content.character_map.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(content.character_map)}});
  if (content.single_spaces) {
    steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

Json spaces(const SentencePieceContent& content) {
  return {{"type", "Metaspace"},
          {"replacement", kVisibleSpace},
          {"prepend_scheme", content.leading_space ? "always" : "never"},
          {"split", true}};
}

Json decoder(const SentencePieceContent& content) {
  if (!content.byte_fallback) return spaces(content);
  Json steps = {{{"type", "Replace"}, {"pattern", {{"String", kVisibleSpace}}}, {"content", " "}},
                {{"type", "ByteFallback"}},
                {{"type", "Fuse"}}};
  if (content.leading_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

Json post_processor(const SentencePieceContent& content, const Specials& specials, const TextEnds& ends) {
  const auto token = [&](bool wanted, int32_t id) {
    return wanted && id >= 0 ? tokenization::NamedToken{content.pieces[static_cast<size_t>(id)].text, id}
                             : tokenization::NamedToken{};
  };
  return tokenization::around_texts(token(ends.bos, specials.bos), token(ends.eos, specials.eos), ends.segments);
}

/// The byte offsets of the characters of a UTF-8 text, except the first.
std::vector<size_t> cuts_of(const std::string& text) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < text.size(); ++i) {
    if (!is_continuation(text[i])) cuts.push_back(i);
  }
  return cuts;
}

/// SentencePiece merges any two neighbors that form a piece, highest score first, so every way to divide a piece into
/// two pieces is a merge.
Json merges(const SentencePieceContent& content) {
  std::map<std::string, size_t> ids;
  for (size_t id = 0; id < content.pieces.size(); ++id) {
    if (content.pieces[id].type == Type::normal) ids.emplace(content.pieces[id].text, id);
  }
  std::vector<std::tuple<float, size_t, size_t, size_t>> found;  // −score; ids of the piece and its two parts
  for (const auto& [text, id] : ids) {
    for (const size_t cut : cuts_of(text)) {
      const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left != ids.end() && right != ids.end())
        found.emplace_back(-content.pieces[id].score, id, left->second, right->second);
    }
  }
  std::sort(found.begin(), found.end());
  Json list = Json::array();
  for (const auto& [rank, id, left, right] : found)
    list.push_back({content.pieces[left].text, content.pieces[right].text});
  return list;
}

Json byte_pair_model(const SentencePieceContent& content, const Specials& specials) {
  std::map<std::string, size_t> vocabulary;
  for (size_t id = 0; id < content.pieces.size(); ++id) vocabulary[content.pieces[id].text] = id;
  Json unknown;
  if (specials.unknown >= 0) unknown = content.pieces[static_cast<size_t>(specials.unknown)].text;
  return {{"type", "BPE"},       {"unk_token", unknown},
          {"fuse_unk", true},    {"byte_fallback", content.byte_fallback},
          {"vocab", vocabulary}, {"merges", merges(content)}};
}

Json unigram_model(const SentencePieceContent& content, const Specials& specials) {
  Json vocabulary = Json::array();
  for (const Piece& piece : content.pieces) vocabulary.push_back({piece.text, piece.score});
  Json unknown;
  if (specials.unknown >= 0) unknown = specials.unknown;
  return {{"type", "Unigram"}, {"unk_id", unknown}, {"vocab", vocabulary}, {"byte_fallback", content.byte_fallback}};
}

}  // namespace

std::string tokenizer_json_of(const SentencePieceContent& content, const Specials& specials, const TextEnds& ends) {
  require_expressible(content);
  const bool unigram = content.algorithm == SentencePieceContent::Algorithm::unigram;
  const Json document = {{"version", "1.0"},
                         {"added_tokens", added_tokens(content)},
                         {"normalizer", normalizer(content)},
                         {"pre_tokenizer", spaces(content)},
                         {"post_processor", post_processor(content, specials, ends)},
                         {"decoder", decoder(content)},
                         {"model", unigram ? unigram_model(content, specials) : byte_pair_model(content, specials)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace plumb
