#include "plumb/text/word_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/sections.h"
#include "plumb/text/sentencepiece/model.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace {

namespace tk = tokenization;

constexpr const char *kPad = "<pad>", *kBos = "<s>", *kEos = "</s>";
constexpr const char* kUnknown = "\u2581<unk>";  // marked as a word, so that it is decoded as one

/// Marks each word with SentencePiece's symbol for a space.
Json metaspace() {
  return {{"type", "Metaspace"}, {"replacement", kVisibleSpace}, {"prepend_scheme", "always"}, {"split", false}};
}

/// Words end at white space.
Json pre_tokenizer() {
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({{{"type", "WhitespaceSplit"}}, metaspace()})}};
}

std::vector<std::pair<std::string, int64_t>> words_by_frequency(const std::vector<std::string>& lines) {
  const tk::PreTokenize cut = tk::make_pre_tokenizer(pre_tokenizer());
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& line : lines) {
    std::vector<tk::Piece> pieces;
    if (!line.empty()) pieces.push_back({is_valid_utf8(line) ? line : repaired_utf8(line)});
    cut(pieces);
    for (tk::Piece& piece : pieces) ++counts[std::move(piece.text)];
  }
  counts.erase(kUnknown);
  // Special tokens are matched in a text before its words.
  for (const char* token : {kPad, kBos, kEos, kMaskPiece}) counts.erase(kVisibleSpace + std::string(token));
  std::vector<std::pair<std::string, int64_t>> words(counts.begin(), counts.end());
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return words;
}

}  // namespace

std::string word_tokenizer(const std::vector<std::string>& lines, int64_t vocabulary, bool mask) {
  Json added = Json::array();
  std::map<std::string, int32_t> ids;
  const auto add_special = [&](const char* token) {
    const auto id = static_cast<int32_t>(ids.size());
    ids.emplace(token, id);
    added.push_back(tk::added_token(token, id, true, true));
  };
  for (const char* token : {kPad, kBos, kEos}) add_special(token);
  ids.emplace(kUnknown, static_cast<int32_t>(ids.size()));
  if (mask) add_special(kMaskPiece);

  if (static_cast<int64_t>(ids.size()) >= vocabulary)
    throw Error(fmt::format("a vocabulary of {} has no room for words in addition to its special tokens", vocabulary),
                "increase --vocabulary");
  const auto words = words_by_frequency(lines);
  if (words.empty()) throw Error("the tokenizer cannot be trained: the text is empty");
  for (const auto& [word, count] : words) {
    if (static_cast<int64_t>(ids.size()) >= vocabulary) break;
    ids.emplace(word, static_cast<int32_t>(ids.size()));
  }
  const Json document = {{"version", "1.0"},
                         {"added_tokens", added},
                         {"normalizer", nullptr},
                         {"pre_tokenizer", pre_tokenizer()},
                         {"post_processor", tk::around_texts({kBos, ids.at(kBos)}, {}, false)},
                         {"decoder", metaspace()},
                         {"model", {{"type", "WordLevel"}, {"vocab", ids}, {"unk_token", kUnknown}}}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace plumb
