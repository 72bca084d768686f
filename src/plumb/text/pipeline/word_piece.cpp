// WordPiece (Schuster & Nakajima 2012; Devlin et al., arXiv 1810.04805) and whole words.
#include <fmt/format.h>

#include "plumb/base/utf8.h"
#include "plumb/text/pipeline/byte_trie.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {
namespace {

/// Cuts a word greedily into the longest tokens from left to right; tokens within a word have the prefix "##". A word
/// that cannot be cut, or is too long, is unknown.
class WordPieceModel final : public Model {
 public:
  explicit WordPieceModel(const Settings& settings)
      : unknown_(settings.at("unk_token").get<std::string>()),
        longest_(settings.contains("max_input_chars_per_word") ? whole_number(settings.at("max_input_chars_per_word"))
                                                               : 100) {
    const auto prefix = setting_or(settings, "continuing_subword_prefix", std::string("##"));
    for (const auto& [token, id] : settings.at("vocab").items()) vocabulary_.add(token, whole_number(id));
    for (const auto& [token, id] : settings.at("vocab").items()) {
      beginnings_.insert(token, id.get<int32_t>());
      if (token.starts_with(prefix))
        continuations_.insert(std::string_view(token).substr(prefix.size()), id.get<int32_t>());
    }
    unknown_id_ = vocabulary_.find(unknown_);
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    if (static_cast<int64_t>(characters_in(text)) <= longest_) {
      size_t begin = 0;
      while (begin < text.size()) {
        size_t length = 0;
        int32_t id = -1;
        (begin == 0 ? beginnings_ : continuations_)
            .for_each_prefix(text.substr(begin), [&](size_t size, int32_t found) {
              const size_t end = begin + size;
              if (end < text.size() && is_continuation(text[end])) return;
              length = size;
              id = found;
            });
        if (id < 0) break;
        ids.push_back(id);
        begin += length;
      }
      if (begin == text.size()) return;
    }
    ids.resize(before);
    if (unknown_id_ < 0) throw Error(fmt::format("the vocabulary lacks its token for unknown text, '{}'", unknown_));
    ids.push_back(unknown_id_);
  }

  [[nodiscard]] std::string unknown() const override { return unknown_; }

 private:
  std::string unknown_;
  int32_t unknown_id_ = -1;
  int64_t longest_;  // characters per word, at most
  ByteTrie beginnings_, continuations_;
};

/// Each word is a token or unknown.
class WordLevelModel final : public Model {
 public:
  explicit WordLevelModel(const Settings& settings) : unknown_(settings.at("unk_token").get<std::string>()) {
    for (const auto& [token, id] : settings.at("vocab").items()) vocabulary_.add(token, whole_number(id));
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    int32_t id = vocabulary_.find(text);
    if (id < 0) id = vocabulary_.find(unknown_);
    if (id < 0) throw Error(fmt::format("the vocabulary lacks its token for unknown text, '{}'", unknown_));
    ids.push_back(id);
  }

  [[nodiscard]] std::string unknown() const override { return unknown_; }

 private:
  std::string unknown_;
};

[[maybe_unused]] const bool kWordModelsRegistered = [] {
  models().add("WordPiece", "the longest tokens from left to right", "Devlin et al., arXiv 1810.04805",
               [](const Settings& settings) { return std::make_shared<WordPieceModel>(settings); });
  models().add("WordLevel", "whole words", "",
               [](const Settings& settings) { return std::make_shared<WordLevelModel>(settings); });
  return true;
}();

}  // namespace
}  // namespace plumb::tokenization
