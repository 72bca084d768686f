// The unigram language model: Kudo, arXiv 1804.10959, as in Hugging Face's `tokenizers`.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/byte_tokens.h"
#include "plumb/text/pipeline/byte_trie.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {
namespace {

/// Cuts a piece so that the sum of its tokens' log-probabilities is maximal (Viterbi algorithm). Adjacent unknown
/// characters become one unknown token.
class UnigramModel final : public Model {
 public:
  explicit UnigramModel(const Settings& settings) : byte_fallback_(setting_or(settings, "byte_fallback", false)) {
    for (const char* random : {"alpha", "nbest_size"}) {
      if (settings.contains(random) && !settings.at(random).is_null()) {
        throw Error(fmt::format("the model's '{}' would make token ids random", random), "set it to null");
      }
    }
    const Settings& vocabulary = parts(settings, "vocab");
    double lowest = 0;
    for (const Settings& entry : vocabulary) {
      if (!entry.is_array() || entry.size() != 2)
        throw Error("an entry of the vocabulary is not a token with its score");
      const auto& token = entry[0].get_ref<const std::string&>();
      const auto id = static_cast<int32_t>(scores_.size());
      vocabulary_.add(token, id);
      trie_.insert(token, id);
      scores_.push_back(entry[1].get<double>());
      lowest = scores_.size() == 1 ? scores_[0] : std::min(lowest, scores_.back());
    }
    unknown_score_ = lowest - kUnknownPenalty;
    if (settings.contains("unk_id") && !settings.at("unk_id").is_null()) {
      unknown_id_ = static_cast<int32_t>(std::min<int64_t>(whole_number(settings.at("unk_id")), Vocabulary::kLargest));
      if (vocabulary_.token(unknown_id_) == nullptr) throw Error("'unk_id' is outside the vocabulary");
    }
    byte_tokens_ = ByteTokens(vocabulary_);
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const std::vector<Node> best = best_paths(text);
    std::vector<Span> parts;
    std::vector<bool> unknown;
    for (size_t end = text.size(); end > 0; end = best[end].begin) {
      const bool is_unknown = unknown_id_ >= 0 && best[end].id == unknown_id_;
      if (is_unknown && !unknown.empty() && unknown.back()) {
        parts.back().begin = best[end].begin;
      } else {
        parts.push_back({best[end].begin, end});
        unknown.push_back(is_unknown);
      }
    }
    for (size_t i = parts.size(); i-- > 0;) {
      const std::string_view part = text.substr(parts[i].begin, parts[i].end - parts[i].begin);
      if (!unknown[i]) {
        ids.push_back(best[parts[i].end].id);
        continue;
      }
      const int32_t id = vocabulary_.find(part);
      if (id >= 0) {
        ids.push_back(id);
      } else if (!byte_fallback_ || !byte_tokens_.append(part, ids)) {
        ids.push_back(unknown_id_);
      }
    }
  }

  [[nodiscard]] std::string unknown() const override {
    const std::string* token = vocabulary_.token(unknown_id_);
    return token == nullptr ? std::string() : *token;
  }

 private:
  static constexpr double kUnknownPenalty = 10;
  struct Span {
    size_t begin, end;
  };
  struct Node {  // the best path to a position: its score and last token
    double score = 0;
    size_t begin = 0;
    int32_t id = -1;  // -1: not reached
  };

  [[nodiscard]] std::vector<Node> best_paths(std::string_view text) const {
    std::vector<Node> best(text.size() + 1);
    const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
      if (best[end].id < 0 || score > best[end].score) best[end] = {score, begin, id};
    };
    for (size_t begin = 0; begin < text.size();) {
      size_t next = begin;
      next_character(text, next);
      bool has_single = false;
      trie_.for_each_prefix(text.substr(begin), [&](size_t length, int32_t id) {
        offer(begin, begin + length, best[begin].score + scores_[static_cast<size_t>(id)], id);
        has_single = has_single || length == next - begin;
      });
      if (!has_single) {
        if (unknown_id_ < 0) throw Error("text needs a token for unknown text, and the vocabulary has none");
        offer(begin, next, best[begin].score + unknown_score_, unknown_id_);
      }
      begin = next;
    }
    return best;
  }

  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_id_ = -1;
  bool byte_fallback_;
  ByteTokens byte_tokens_;
  ByteTrie trie_;
};

[[maybe_unused]] const bool kUnigramRegistered = models().add(
    "Unigram", "the most probable tokens", "Kudo, arXiv 1804.10959",
    [](const Settings& settings) -> std::shared_ptr<const Model> { return std::make_shared<UnigramModel>(settings); });

}  // namespace
}  // namespace plumb::tokenization
