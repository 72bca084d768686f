#include "plumb/text/pipeline/byte_pair.h"

#include <fmt/format.h>

#include <queue>
#include <tuple>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {
namespace {

constexpr char32_t kCommonCharacters = 0x200;
constexpr size_t kShortWord = 48;

/// The two parts of a merge: "a b", or ["a", "b"], whose parts may contain spaces.
std::pair<std::string, std::string> parts_of_merge(const Settings& merge) {
  if (merge.is_array() && merge.size() == 2) return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const auto text = merge.get<std::string>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    throw Error(fmt::format("the merge '{}' does not consist of two parts", text));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

BytePairModel::BytePairModel(const Settings& settings)
    : unknown_(setting_or(settings, "unk_token", std::string())),
      prefix_(setting_or(settings, "continuing_subword_prefix", std::string())),
      suffix_(setting_or(settings, "end_of_word_suffix", std::string())),
      fuse_unknown_(setting_or(settings, "fuse_unk", false)),
      byte_fallback_(setting_or(settings, "byte_fallback", false)),
      ignore_merges_(setting_or(settings, "ignore_merges", false)) {
  if (setting_or(settings, "dropout", 0.0) != 0) {
    throw Error("the model's 'dropout' would make token ids random", "set it to null");
  }
  for (const auto& [token, id] : settings.at("vocab").items()) vocabulary_.add(token, whole_number(id));
  if (!unknown_.empty()) unknown_id_ = vocabulary_.find(unknown_);
  read_merges(settings.at("merges"));
  byte_tokens_ = ByteTokens(vocabulary_);
  for (char32_t c = 0; c < kCommonCharacters; ++c) {
    std::string character;
    append_character(character, c);
    common_characters_.push_back(vocabulary_.find(character));
  }
}

void BytePairModel::read_merges(const Settings& merges) {
  if (!merges.is_array()) throw Error("'merges' is not a list");
  merges_ = PairTable(merges.size());
  std::vector<bool> made(static_cast<size_t>(vocabulary_.limit()));
  int32_t rank = 0;
  for (const Settings& merge : merges) {
    const auto [left, right] = parts_of_merge(merge);
    const std::string joined = left + (right.size() >= prefix_.size() ? right.substr(prefix_.size()) : right);
    const int32_t ids[] = {vocabulary_.find(left), vocabulary_.find(right), vocabulary_.find(joined)};
    const std::string* const names[] = {&left, &right, &joined};
    for (int i = 0; i < 3; ++i) {
      if (ids[i] < 0) throw Error(fmt::format("the merge '{} {}' needs the token '{}'", left, right, *names[i]));
    }
    one_pair_per_token_ = one_pair_per_token_ && !made[static_cast<size_t>(ids[2])];
    made[static_cast<size_t>(ids[2])] = true;
    merges_.insert(static_cast<uint32_t>(ids[0]), static_cast<uint32_t>(ids[1]), rank++, ids[2]);
  }
}

void BytePairModel::append_unknown(bool pending, std::vector<int32_t>& ids) const {
  if (!pending) return;
  if (unknown_id_ < 0) {
    throw Error(fmt::format("the vocabulary lacks its token for unknown text, '{}'", unknown_));
  }
  ids.push_back(unknown_id_);
}

void BytePairModel::characters(std::string_view text, std::vector<int32_t>& ids) const {
  bool pending = false;  // an unknown token to append before the next known one
  std::string affixed;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next_character(text, i);
    const bool plain = (begin == 0 || prefix_.empty()) && (i < text.size() || suffix_.empty());
    std::string_view character = text.substr(begin, i - begin);
    if (!plain) {
      affixed = begin > 0 ? prefix_ : std::string();
      affixed += character;
      if (i == text.size()) affixed += suffix_;
      character = affixed;
    }
    const int32_t id = plain && c < kCommonCharacters ? common_characters_[c] : vocabulary_.find(character);
    if (id >= 0) {
      append_unknown(pending, ids);
      pending = false;
      ids.push_back(id);
      continue;
    }
    if (byte_fallback_ && byte_tokens_.append(character, ids)) continue;
    if (unknown_.empty()) continue;
    if (!fuse_unknown_) append_unknown(pending, ids);
    pending = true;
  }
  append_unknown(pending, ids);
}

void BytePairModel::encode(std::string_view text, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const int32_t whole = vocabulary_.find(text);
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  const size_t begin = ids.size();
  characters(text, ids);
  if (one_pair_per_token_ && ids.size() - begin <= kShortWord) {
    merge_short(ids, begin);
  } else {
    merge_long(ids, begin);
  }
}

/// For short pieces: scans all pairs for the lowest rank after every merge.
void BytePairModel::merge_short(std::vector<int32_t>& ids, size_t begin) const {
  int32_t* const symbols = ids.data() + begin;
  size_t count = ids.size() - begin;
  if (count < 2) return;
  constexpr int32_t kNone = INT32_MAX;
  int32_t ranks[kShortWord];
  int32_t results[kShortWord];
  const auto look_up = [&](size_t i) {
    const auto* merge = merges_.find(static_cast<uint32_t>(symbols[i]), static_cast<uint32_t>(symbols[i + 1]));
    ranks[i] = merge == nullptr ? kNone : merge->first;
    results[i] = merge == nullptr ? 0 : merge->second;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNone) break;
    symbols[best] = results[best];
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
      results[i] = results[i + 1];
    }
    --count;
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  ids.resize(begin + count);
}

/// For long pieces: a priority queue of possible merges over a linked list. As in `tokenizers`, an entry whose pair has
/// changed still applies if the new pair gives the same token.
void BytePairModel::merge_long(std::vector<int32_t>& ids, size_t begin) const {
  struct Symbol {
    int32_t id;
    int32_t previous, next;  // -1: none
    bool merged;             // into the previous symbol
  };
  using Candidate = std::tuple<int32_t, int32_t, int32_t>;  // rank, position, token
  const auto count = static_cast<int32_t>(ids.size() - begin);
  if (count < 2) return;
  std::vector<Symbol> symbols;
  symbols.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back({ids[begin + static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, false});
  }
  std::vector<Candidate> initial;
  const auto candidate_at = [&](int32_t position) -> const PairTable::Entry* {
    const Symbol& left = symbols[static_cast<size_t>(position)];
    if (left.next < 0) return nullptr;
    return merges_.find(static_cast<uint32_t>(left.id),
                        static_cast<uint32_t>(symbols[static_cast<size_t>(left.next)].id));
  };
  for (int32_t i = 0; i + 1 < count; ++i) {
    if (const auto* merge = candidate_at(i)) initial.emplace_back(merge->first, i, merge->second);
  }
  std::priority_queue queue(std::greater<Candidate>(), std::move(initial));
  while (!queue.empty()) {
    const auto [rank, position, token] = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(position)];
    if (left.merged) continue;
    const auto* merge = candidate_at(position);
    if (merge == nullptr || merge->second != token) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    right.merged = true;
    left.id = token;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = position;
    if (left.previous >= 0) {
      if (const auto* before = candidate_at(left.previous)) queue.emplace(before->first, left.previous, before->second);
    }
    if (const auto* after = candidate_at(position)) queue.emplace(after->first, position, after->second);
  }
  ids.resize(begin);
  for (const Symbol& symbol : symbols) {
    if (!symbol.merged) ids.push_back(symbol.id);
  }
}

namespace {

[[maybe_unused]] const bool kBytePairRegistered = models().add(
    "BPE", "byte-pair encoding", "Sennrich et al., arXiv 1508.07909",
    [](const Settings& settings) -> std::shared_ptr<const Model> { return std::make_shared<BytePairModel>(settings); });

}  // namespace
}  // namespace plumb::tokenization
