#include "plumb/text/kinds/marian.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/text/sentencepiece/content.h"
#include "plumb/text/sentencepiece/model.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

std::map<std::string, int32_t, std::less<>> read_ids(const fs::path& file) {
  const Json document = read_json(file);
  if (!document.is_object()) throw Error(fmt::format("{}: not an object", file.string()));
  std::map<std::string, int32_t, std::less<>> ids;
  for (const auto& [token, id] : document.items()) {
    constexpr int64_t kMost = 10'000'000;
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMost)
      throw Error(fmt::format("{}: the token '{}' has the id {}", file.string(), token, id.dump()));
    ids.emplace(token, id.get<int32_t>());
  }
  return ids;
}

/// The length of a language code such as ">>deu<<" at the beginning of a text, up to the last "<<"; 0 if there is none.
size_t code_length(std::string_view text) {
  if (!text.starts_with(">>")) return 0;
  const size_t end = text.rfind("<<");
  return end == std::string_view::npos || end < 3 ? 0 : end + 2;
}

class MarianTokenizer final : public TokenizerModel {
 public:
  MarianTokenizer(std::string bytes, const fs::path& path) : serialized_(std::move(bytes)), model_(serialized_) {
    if (!model_) throw Error(fmt::format("{}: not a SentencePiece model, or damaged", path.string()));
    pieces_ = read_sentence_piece(serialized_).pieces;
    const fs::path folder = path.parent_path();
    const bool own = path.filename() == "target.spm" && fs::is_regular_file(folder / "target_vocab.json");
    ids_ = read_ids(folder / (own ? "target_vocab.json" : "vocab.json"));
    int32_t last = -1;
    for (const auto& [token, id] : ids_) last = std::max(last, id);
    tokens_.resize(static_cast<size_t>(last) + 1);
    for (const auto& [token, id] : ids_) tokens_[static_cast<size_t>(id)] = token;
    specials_ = {find("<pad>"), -1, find("</s>"), find("<unk>"), -1};
    if (specials_.unknown < 0 || specials_.eos < 0)
      throw Error(fmt::format("{}: has no </s> or no <unk>", (folder / "vocab.json").string()));
  }

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const size_t code = code_length(text);
    if (code > 0) ids.push_back(id_of(text.substr(0, code)));
    std::vector<int> pieces;
    const std::string message = model_.encode(text.substr(code), pieces);
    if (!message.empty()) throw Error(fmt::format("text cannot be tokenized: {}", message));
    for (const int piece : pieces) ids.push_back(id_of(pieces_.at(static_cast<size_t>(piece)).text));
    return ids;
  }

  [[nodiscard]] std::vector<int32_t> as_input(std::vector<int32_t> ids) const override {
    ids.push_back(specials_.eos);
    return ids;
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (!specials_.is_control(id) && id != specials_.unknown) text += tokens_[static_cast<size_t>(id)];
    }
    replace_all(text, kVisibleSpace, " ");
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(' ') - first + 1);
  }

  [[nodiscard]] const Specials& specials() const override { return specials_; }
  [[nodiscard]] int64_t vocabulary() const override { return std::ssize(tokens_); }
  [[nodiscard]] int32_t find(std::string_view token) const override {
    const auto entry = ids_.find(token);
    return entry == ids_.end() ? -1 : entry->second;
  }
  [[nodiscard]] std::string piece(int32_t id) const override { return tokens_[static_cast<size_t>(id)]; }
  [[nodiscard]] std::string definition() const override { return Json(ids_).dump() + serialized_; }
  [[nodiscard]] bool is_one_file() const override { return false; }  // vocab.json has the ids
  [[nodiscard]] std::string serialized() const override { return serialized_; }
  void save_as_json(const fs::path&, const TextEnds&) const override {
    throw Error("a tokenizer of Marian cannot be written as a tokenizer.json");
  }

 private:
  [[nodiscard]] int32_t id_of(std::string_view token) const {
    const int32_t id = find(token);
    return id < 0 ? specials_.unknown : id;
  }

  std::string serialized_;
  SentencePieceModel model_;
  std::vector<SentencePieceContent::Piece> pieces_;
  std::map<std::string, int32_t, std::less<>> ids_;
  std::vector<std::string> tokens_;  // by id
  Specials specials_;
};

}  // namespace

bool is_marian(const fs::path& path) {
  return (path.filename() == "source.spm" || path.filename() == "target.spm") &&
         fs::is_regular_file(path.parent_path() / "vocab.json");
}

std::shared_ptr<const TokenizerModel> make_marian(std::string bytes, const fs::path& path) {
  return std::make_shared<MarianTokenizer>(std::move(bytes), path);
}

}  // namespace plumb
