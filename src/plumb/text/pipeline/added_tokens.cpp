#include "plumb/text/pipeline/added_tokens.h"

#include <algorithm>
#include <set>
#include <utility>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/settings.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = beginning_of_character(text, text.size() - 1);
  return is_word_character(next_character(text, at));
}

bool begins_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word_character(next_character(text, at));
}

size_t without_space_at_end(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t at = beginning_of_character(text, end - 1);
    size_t next = at;
    if (!is_white_space(next_character(text, next))) break;
    end = at;
  }
  return end;
}

size_t space_at_begin(std::string_view text) {
  size_t size = 0;
  for (size_t at = 0; at < text.size() && is_white_space(next_character(text, at));) size = at;
  return size;
}

AddedToken read_added_token(const Settings& entry) {
  return {.content = entry.at("content").get<std::string>(),
          .single_word = setting_or(entry, "single_word", false),
          .left = setting_or(entry, "lstrip", false),
          .right = setting_or(entry, "rstrip", false),
          .normalized = setting_or(entry, "normalized", !setting_or(entry, "special", false)),
          .special = setting_or(entry, "special", false)};
}

}  // namespace

AddedTokens::AddedTokens(const Settings& list, const Vocabulary& vocabulary, const Normalize& normalize)
    : normalize_(normalize) {
  auto next = static_cast<int64_t>(vocabulary.size());
  std::set<std::string> special;
  for (const Settings& entry : list) {
    AddedToken token = read_added_token(entry);
    if (token.content.empty()) continue;
    int64_t id = find(token.content);
    if (id < 0) id = vocabulary.find(token.content);
    if (id < 0) id = next++;
    if (id >= Vocabulary::kLargest) throw Error("the id of the added token '" + token.content + "' is out of range");
    token.id = static_cast<int32_t>(id);
    token.matched = token.content;
    if (token.normalized && normalize_) {
      Piece content{token.content};
      normalize_(content);
      token.matched = content.text;
    }
    token.decoded = token.matched;
    if (token.special) special.insert(token.content);
    ids_[token.content] = token.id;
    const auto [known, is_new] = by_id_.try_emplace(token.id, tokens_.size());
    if (is_new) {
      tokens_.push_back(token);
    } else {
      AddedToken& before = tokens_[known->second];
      if (before.decoded != before.content) token.decoded = before.decoded;
      before = token;
    }
  }
  for (AddedToken& token : tokens_) token.special = special.contains(token.decoded);
  // Of tokens that are equal once they are normalized, the first is found; special ones come before others.
  std::set<std::pair<bool, std::string>> taken;
  for (const bool of_special : {true, false}) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != of_special || !taken.emplace(token.normalized, token.matched).second) continue;
      (token.normalized ? normalized_ : verbatim_).insert(token.matched, static_cast<int32_t>(i));
    }
  }
}

std::vector<Piece> AddedTokens::cut(std::string text) const {
  std::vector<Piece> verbatim;
  const size_t size = text.size();
  size_t first = 0, normalized_size = 0;
  if (!text.empty()) next_character(text, first);
  cut_piece({std::move(text), -1, first}, verbatim_, verbatim);
  std::vector<Piece> pieces;
  for (Piece& piece : verbatim) {
    if (piece.token >= 0) {
      pieces.push_back(std::move(piece));
    } else {
      if (normalize_) normalize_(piece);
      check_growth(size, normalized_size += piece.text.size());
      cut_piece(std::move(piece), normalized_, pieces);
    }
  }
  return pieces;
}

void AddedTokens::cut_piece(Piece piece, const ByteTrie& trie, std::vector<Piece>& pieces) const {
  const std::string_view text = piece.text;
  size_t done = 0, space_end = 0;  // the end of white space that a token took, so that none is looked at twice
  const auto text_until = [&](size_t end) {
    if (end > done) pieces.push_back(piece.part(done, end));
  };
  for (size_t at = 0; !trie.empty() && at < text.size();) {
    size_t length = 0;
    int32_t found = -1;
    if (trie.begins_with(text[at])) {
      trie.for_each_prefix(text.substr(at), [&](size_t size, int32_t value) {
        length = size;
        found = value;
      });
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = at;
    size_t end = at + length;
    at = end;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) continue;
    // White space may belong to two tokens: one may begin before the end of the previous one, which takes the space on
    // its right. One that takes the space on its left begins there, and if nothing is left of it, it is no token.
    if (token.left) begin = done + without_space_at_end(text.substr(done, std::max(begin, done) - done));
    if (token.right && end > space_end) space_end = end + space_at_begin(text.substr(end));
    if (token.right) end = space_end;
    text_until(begin);
    if (begin >= end) continue;
    pieces.push_back({token.content, token.id});
    done = end;
  }
  if (done == 0) {
    if (!piece.text.empty()) pieces.push_back(std::move(piece));
  } else {
    text_until(text.size());
  }
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

int32_t AddedTokens::find(const std::string& content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace plumb::tokenization
