#include "plumb/text/kinds/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/utf8.h"
#include "plumb/text/kinds/transformers_reading.h"
#include "plumb/text/pipeline/added_tokens.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/growth.h"
#include "plumb/text/pipeline/sections.h"

namespace plumb {
namespace {

namespace tk = tokenization;

class Pipeline final : public TokenizerModel {
 public:
  /// `bytes` are those of the document.
  Pipeline(std::string bytes, const nlohmann::json& document, const SpecialNames& names)
      : document_(std::move(bytes)), names_(names) {
    model_ = tk::make_token_model(document.at("model"));
    normalize_ = tk::make_normalizer(value_or_null(document, "normalizer"));
    pre_tokenize_ = tk::make_pre_tokenizer(value_or_null(document, "pre_tokenizer"));
    template_ = tk::make_template(value_or_null(document, "post_processor"));
    decode_ = tk::make_decoder(value_or_null(document, "decoder"));
    added_ = tk::AddedTokens(value_or_null(document, "added_tokens"), model_->vocabulary(), normalize_);
    limit_ = model_->vocabulary().limit();
    for (const auto& token : added_.all()) limit_ = std::max<int64_t>(limit_, token.id + 1);
    check_template();
    specials_ = {find_special(names_.pad, {"<pad>", "[PAD]", "<|pad|>"}),
                 find_special(names_.bos, {"<s>", "[CLS]", "<bos>", "<|begin_of_text|>", "<|startoftext|>"}),
                 find_special(names_.eos, {"</s>", "[SEP]", "<eos>", "<|end_of_text|>", "<|endoftext|>"}),
                 find_special(names_.unknown.empty() ? model_->unknown() : names_.unknown, {}),
                 find_special(names_.mask, {"<mask>", "[MASK]", "<|mask|>"})};
    const auto separators = std::count(template_.between.begin(), template_.between.end(), specials_.eos);
    specials_.separators = std::max(1, static_cast<int32_t>(separators));
  }

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<tk::Piece> pieces = added_.cut(is_valid_utf8(text) ? std::string(text) : repaired_utf8(text));
    pre_tokenize_(pieces);
    tk::check_growth(text.size(), tk::bytes_in(pieces));
    std::vector<int32_t> ids;
    ids.reserve(pieces.size() * 3 / 2);
    for (const tk::Piece& piece : pieces) {
      if (piece.token >= 0) {
        ids.push_back(piece.token);
      } else {
        model_->encode(piece.text, ids);
      }
    }
    return ids;
  }

  [[nodiscard]] std::vector<int32_t> as_input(std::vector<int32_t> ids) const override {
    ids.insert(ids.begin(), template_.before.begin(), template_.before.end());
    ids.insert(ids.end(), template_.after.begin(), template_.after.end());
    return ids;
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int32_t id : ids) {
      if (const tk::AddedToken* added = added_.find(id)) {
        if (!added->special) tokens.push_back(added->decoded);
      } else if (const std::string* token = model_->vocabulary().token(id)) {
        tokens.push_back(*token);
      }
    }
    decode_(tokens);
    std::string text;
    for (const std::string& token : tokens) text += token;
    return text;
  }

  [[nodiscard]] const Specials& specials() const override { return specials_; }
  [[nodiscard]] int64_t vocabulary() const override { return limit_; }

  [[nodiscard]] int32_t find(std::string_view token) const override {
    const int32_t added = added_.find(std::string(token));
    return added >= 0 ? added : model_->vocabulary().find(token);
  }

  [[nodiscard]] std::string piece(int32_t id) const override {
    if (const tk::AddedToken* added = added_.find(id)) return added->content;
    const std::string* token = model_->vocabulary().token(id);
    return token == nullptr ? std::string() : *token;
  }

  /// The sections that determine ids, and of the model those settings that are on.
  [[nodiscard]] std::string definition() const override {
    auto document = nlohmann::json::parse(document_);
    for (const char* name : {"version", "truncation", "padding", "decoder"}) document.erase(name);
    auto& model = document.at("model");
    for (auto setting = model.begin(); setting != model.end();) {
      const bool is_off = setting->is_null() || *setting == false || *setting == "";
      setting = is_off ? model.erase(setting) : std::next(setting);
    }
    if (model.contains("merges")) {
      for (auto& merge : model.at("merges")) {  // "a b" in older files, otherwise ["a", "b"]
        if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
          merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
      }
    }
    return document.dump();
  }

  [[nodiscard]] std::string serialized() const override { return document_; }

  void save(const std::filesystem::path& path) const override {
    TokenizerModel::save(path);
    write_special_names(path, names_);
  }

  /// Around the texts of encoders and around sources (`ends.eos`), Plumb's special tokens may differ from the
  /// tokenizer's; for decoders they are the same.
  void save_as_json(const std::filesystem::path& path, const TextEnds& ends) const override {
    auto document = nlohmann::json::parse(document_);
    if (ends.eos && specials_.bos >= 0 && specials_.eos >= 0 && specials_.separators == 1) {
      const auto named = [&](bool used, int32_t id) { return used ? tk::NamedToken{piece(id), id} : tk::NamedToken{}; };
      document["post_processor"] =
          tk::around_texts(named(ends.bos, specials_.bos), named(ends.eos, specials_.eos), ends.segments);
    }
    write_file_atomic(path, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    const auto name_of = [&](int32_t id) {
      const tk::AddedToken* added = added_.find(id);
      return added == nullptr ? std::string() : added->content;
    };
    write_settings_for_transformers(path,
                                    {name_of(specials_.pad), name_of(specials_.bos), name_of(specials_.eos),
                                     name_of(specials_.unknown), name_of(specials_.mask)},
                                    ends.segments);
  }

 private:
  /// The id of the named token or, without a name, of the first known one.
  [[nodiscard]] int32_t find_special(const std::string& name, std::initializer_list<const char*> known) const {
    if (!name.empty()) return find(name);
    for (const char* candidate : known) {
      const int32_t id = added_.find(candidate);
      if (id >= 0) return id;
    }
    return -1;
  }

  void check_template() const {
    for (const auto* tokens : {&template_.before, &template_.between, &template_.after}) {
      for (const int32_t id : *tokens) {
        if (id >= limit_) throw Error(fmt::format("the post-processor's token {} is outside the vocabulary", id));
      }
    }
  }

  std::string document_;
  SpecialNames names_;
  std::shared_ptr<const tk::Model> model_;
  tk::Normalize normalize_;
  tk::PreTokenize pre_tokenize_;
  tk::Template template_;
  tk::Decode decode_;
  tk::AddedTokens added_;
  int64_t limit_ = 0;
  Specials specials_;
};

}  // namespace

std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const SpecialNames& names) {
  if (nests_too_deeply(document)) throw Error("it is nested too deeply");
  const auto parsed = nlohmann::json::parse(document);
  return std::make_shared<Pipeline>(std::move(document), parsed, names);
}

std::shared_ptr<const TokenizerModel> make_pipeline(std::string document, const std::filesystem::path& path) {
  const SpecialNames names = special_names_beside(path);
  try {
    if (path.filename() != "tokenizer.json") return make_pipeline(std::move(document), names);
    const nlohmann::json read = as_transformers_reads(document, path);
    return std::make_shared<Pipeline>(read.dump(), read, names);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path.string(), error.what()), error.hint());
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: not a tokenizer.json, or damaged: {}", path.string(), error.what()));
  }
}

namespace {

[[maybe_unused]] const bool kPipelineRegistered = tokenizer_kinds().add(
    "huggingface", "tokenizer.json of Hugging Face's tokenizers: BPE, WordPiece, Unigram, words", "",
    {.files = {"tokenizer.json"},
     .precedence = 4,
     .recognizes =
         [](std::string_view bytes) {
           const size_t first = bytes.find_first_not_of(" \t\r\n");
           return first != std::string_view::npos && bytes[first] == '{';
         },
     .load = [](std::string bytes,
                const std::filesystem::path& path) { return make_pipeline(std::move(bytes), path); }});

}  // namespace
}  // namespace plumb
