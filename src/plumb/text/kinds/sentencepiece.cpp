// SentencePiece models, including those trained by Plumb.
#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/text/kinds/marian.h"
#include "plumb/text/kinds/special_tokens.h"
#include "plumb/text/sentencepiece/content.h"
#include "plumb/text/sentencepiece/model.h"
#include "plumb/text/sentencepiece/tokenizer_json.h"
#include "plumb/text/tokenizer_model.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace {

/// SentencePiece needs more than a hundred bytes of memory per byte of text encoded at once.
constexpr size_t kLongestPart = size_t{1} << 20;

/// Where to cut a text so that its first part has at most kLongestPart bytes: at a single space between words, which
/// the second part then starts with implicitly; the text's size if it is short enough or has no such space.
size_t end_of_part(std::string_view text) {
  if (text.size() <= kLongestPart) return text.size();
  for (size_t i = kLongestPart - 1; i > 0; --i) {
    if (text[i] == ' ' && text[i - 1] != ' ' && text[i + 1] != ' ') return i;
  }
  return text.size();
}

class SentencePieceTokenizer final : public TokenizerModel {
 public:
  explicit SentencePieceTokenizer(std::string bytes, const std::string& name)
      : serialized_(std::move(bytes)), pieces_(serialized_) {
    if (!pieces_) throw Error(fmt::format("{}: not a SentencePiece model, or damaged", name));
    specials_ = pieces_.specials();
  }

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    if (text.size() <= kLongestPart || !begins_texts_with_space()) return encode_at_once(text);
    std::vector<int32_t> ids;
    while (!text.empty()) {
      const size_t end = end_of_part(text);
      const std::vector<int32_t> part = encode_at_once(text.substr(0, end));
      ids.insert(ids.end(), part.begin(), part.end());
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return ids;
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    std::vector<int> pieces;
    pieces.reserve(ids.size());
    for (const int32_t id : ids) {
      if (!specials_.is_control(id)) pieces.push_back(id);
    }
    std::string text;
    const std::string message = pieces_.decode(pieces, text);
    if (!message.empty()) throw Error(fmt::format("tokens cannot be decoded: {}", message));
    return text;
  }

  [[nodiscard]] const Specials& specials() const override { return specials_; }
  [[nodiscard]] int64_t vocabulary() const override { return pieces_.size(); }
  [[nodiscard]] int32_t find(std::string_view token) const override { return pieces_.find(token); }
  [[nodiscard]] std::string piece(int32_t id) const override { return pieces_.piece(id); }
  [[nodiscard]] std::string serialized() const override { return serialized_; }

  void save_as_json(const std::filesystem::path& path, const TextEnds& ends) const override {
    const SentencePieceContent content = read_sentence_piece(serialized_);
    write_file_atomic(path, tokenizer_json_of(content, specials_, ends));
    const auto name_of = [&](int32_t id) {
      return id < 0 ? std::string() : content.pieces[static_cast<size_t>(id)].text;
    };
    write_settings_for_transformers(path,
                                    {name_of(specials_.pad), name_of(specials_.bos), name_of(specials_.eos),
                                     name_of(specials_.unknown), name_of(specials_.mask)},
                                    ends.segments);
  }

 private:
  [[nodiscard]] std::vector<int32_t> encode_at_once(std::string_view text) const {
    std::vector<int> ids;
    const std::string message = pieces_.encode(text, ids);
    if (!message.empty()) throw Error(fmt::format("text cannot be tokenized: {}", message));
    return ids;
  }

  /// Whether the model adds a space before every text, as most do.
  [[nodiscard]] bool begins_texts_with_space() const {
    const std::vector<int32_t> ids = encode_at_once("a");
    return !ids.empty() && piece(ids.front()).starts_with(kVisibleSpace);
  }

  std::string serialized_;
  SentencePieceModel pieces_;
  Specials specials_;
};

[[maybe_unused]] const bool kSentencePieceRegistered = tokenizer_kinds().add(
    "sentencepiece", "byte-pair encoding and unigram models of SentencePiece", "Kudo & Richardson, arXiv 1808.06226",
    {.files = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "source.spm"},
     .precedence = 2,
     .recognizes = [](std::string_view bytes) { return bytes.starts_with('\n'); },  // the tag of the first field
     .load = [](std::string bytes, const std::filesystem::path& path) -> std::shared_ptr<const TokenizerModel> {
       if (is_marian(path)) return make_marian(std::move(bytes), path);
       return std::make_shared<SentencePieceTokenizer>(std::move(bytes), path.string());
     }});

}  // namespace
}  // namespace plumb
