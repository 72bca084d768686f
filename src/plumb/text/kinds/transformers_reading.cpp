#include "plumb/text/kinds/transformers_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/text/kinds/class_components.h"
#include "plumb/text/kinds/special_tokens.h"
#include "plumb/text/kinds/tokenizer_class.h"

namespace plumb {
namespace {

using Document = nlohmann::json;

/// A token with all of its flags; `token` is a string, or an object with some of them.
Document added_token(const Json& token, bool is_special) {
  const Json flags = token.is_object() ? token : Json{{"content", token.get<std::string>()}};
  const bool special = setting_or(flags, "special", is_special);
  return {{"content", flags.at("content").get<std::string>()},
          {"single_word", setting_or(flags, "single_word", false)},
          {"lstrip", setting_or(flags, "lstrip", false)},
          {"rstrip", setting_or(flags, "rstrip", false)},
          {"normalized", setting_or(flags, "normalized", !special)},
          {"special", special}};
}

/// A special token, whatever `token` says.
Document as_special(const Json& token) {
  Document flags = added_token(token, true);
  flags["special"] = true;
  return flags;
}

/// The special tokens of the settings and the class, in the order in which they are added: first those with the usual
/// keys, then those with other keys that end with "_token".
NamedTokens named_tokens(const Json& settings, const NamedTokens& defaults) {
  NamedTokens names;
  for (const char* key : kUsualTokenKeys) {
    const Json* usual = find_value(defaults, key);
    if (settings.contains(key)) {
      if (!content_of(settings.at(key)).empty()) names.emplace_back(key, settings.at(key));
    } else if (usual != nullptr) {
      names.emplace_back(key, *usual);
    }
  }
  for (const auto& [key, value] : settings.items()) {
    if (is_other_token_key(key) && !content_of(value).empty()) names.emplace_back(key, value);
  }
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    if (!settings.contains(key) || !settings.at(key).is_object()) continue;
    for (const auto& [name, value] : settings.at(key).items()) names.emplace_back(name, value);
  }
  return names;
}

/// Special tokens without a key; `own` is the class, or null.
std::vector<Json> other_special_tokens(const Json& settings, const TokenizerClass* own) {
  std::vector<Json> tokens;
  bool listed = false;
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    if (!settings.contains(key) || !settings.at(key).is_array()) continue;
    listed = true;
    if (!tokens.empty()) continue;
    tokens.assign(settings.at(key).begin(), settings.at(key).end());
  }
  return listed || own == nullptr || own->other_tokens == nullptr ? tokens : own->other_tokens(settings);
}

/// The added tokens of the files, in the order of their ids.
std::map<int64_t, Document> tokens_of_files(const Document& file, const Json& settings,
                                            const std::filesystem::path& folder) {
  std::map<int64_t, Document> tokens;
  const auto id_of = [](const std::string& text) {
    try {
      return static_cast<int64_t>(std::stoll(text));
    } catch (const std::exception&) {
      throw Error(fmt::format("'{}' in 'added_tokens_decoder' of tokenizer_config.json is not an id", text));
    }
  };
  if (settings.contains("added_tokens_decoder")) {
    for (const auto& [id, token] : settings.at("added_tokens_decoder").items())
      tokens[id_of(id)] = added_token(token, false);
    return tokens;
  }
  std::set<std::string> special;
  for (const auto& [key, token] : named_tokens(settings, {})) special.insert(content_of(token));
  for (const Json& token : other_special_tokens(settings, nullptr)) special.insert(content_of(token));
  const Json listed_alone = object_in(folder / "added_tokens.json");
  for (const auto& [token, id] : listed_alone.items())
    tokens[id.get<int64_t>()] = added_token(token, special.contains(token));
  int64_t index = 0;
  for (const Document& token : value_or_null(file, "added_tokens"))
    tokens[token.value("id", index++)] = added_token(Json(token), false);
  return tokens;
}

/// The list "added_tokens" of a document, with the ids that `tokenizers` gives: a token of the vocabulary keeps its id,
/// others get the next free one.
class TokenList {
 public:
  explicit TokenList(const Document& model) {
    const Document& vocabulary = model.at("vocab");
    int64_t index = 0;
    for (const auto& [key, value] : vocabulary.items()) {
      if (vocabulary.is_object()) {
        ids_[key] = value.get<int64_t>();
      } else {
        ids_[(value.is_array() ? value.at(0) : value).get<std::string>()] = index++;
      }
    }
    next_ = static_cast<int64_t>(ids_.size());
  }

  [[nodiscard]] bool contains(const std::string& content) const { return latest_.contains(content); }

  [[nodiscard]] int64_t id_of(const std::string& content) const {
    const auto entry = ids_.find(content);
    if (entry == ids_.end()) throw Error(fmt::format("the vocabulary has no token '{}'", content));
    return entry->second;
  }

  /// Adds a token; one with the same content gets the flags of this one.
  void add(Document token) {
    const auto content = token.at("content").get<std::string>();
    if (content.empty()) return;
    const auto [known, is_new] = ids_.try_emplace(content, next_);
    if (is_new) ++next_;
    token["id"] = known->second;
    const auto [before, is_first] = latest_.try_emplace(content, token);
    if (!is_first && before->second == token) return;
    before->second = token;
    list_.push_back(std::move(token));
  }

  [[nodiscard]] const Document& list() const { return list_; }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::unordered_map<std::string, Document> latest_;
  Document list_ = Document::array();
  int64_t next_ = 0;
};

/// Whether decoded text loses the spaces before punctuation, once more than the file's decoder says.
bool cleans_texts(const Json& settings, const Document& model) {
  if (!setting_or(settings, "clean_up_tokenization_spaces", false)) return false;
  const bool byte_pairs = model.contains("type") ? model.at("type") == "BPE" : model.contains("merges");
  return !byte_pairs ||
         setting_or(settings, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false);
}

Document with_cleaning(const Document& decoder) {
  // Without a decoder, tokens are joined with spaces; U+FFFF is in no text.
  const Document joined =
      decoder.is_null() ? Document{{"type", "WordPiece"}, {"prefix", "\uFFFF"}, {"cleanup", false}} : decoder;
  Document decoders = Document::array({joined, Document{{"type", "Fuse"}}});
  for (const auto& [what, by] : std::initializer_list<std::pair<const char*, const char*>>{{" .", "."},
                                                                                           {" ?", "?"},
                                                                                           {" !", "!"},
                                                                                           {" ,", ","},
                                                                                           {" ' ", "'"},
                                                                                           {" n't", "n't"},
                                                                                           {" 'm", "'m"},
                                                                                           {" 's", "'s"},
                                                                                           {" 've", "'ve"},
                                                                                           {" 're", "'re"}}) {
    decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}});
  }
  return {{"type", "Sequence"}, {"decoders", decoders}};
}

}  // namespace

Document as_transformers_reads(std::string_view bytes, const std::filesystem::path& path) {
  if (nests_too_deeply(bytes)) throw Error("it is nested too deeply");
  Document file = Document::parse(bytes);
  if (!file.is_object()) throw Error("it is not an object");
  // Of an unknown kind of model, or none: it is named when it is made.
  if (!file.contains("model") || !file.at("model").contains("vocab")) return file;
  Json settings = settings_beside(path);
  if (setting_or(settings, "split_special_tokens", false))
    throw Error("tokenizer_config.json says split_special_tokens, which Plumb does not support",
                "remove it; special tokens that are written out in texts are then recognized");
  const std::string class_name = tokenizer_class_in(path.parent_path(), settings, bytes);
  const TokenizerClass* own = tokenizer_class_named(class_name);
  if (const Document& padding = value_or_null(file, "padding");
      (own == nullptr || own->pads_as_file_says) && padding.contains("pad_token") && !settings.contains("pad_token"))
    settings["pad_token"] = Json(padding.at("pad_token"));
  NamedTokens names = named_tokens(settings, own == nullptr ? NamedTokens() : own->defaults);
  const std::vector<Json> others = other_special_tokens(settings, own);

  std::vector<Document> first;
  if (own != nullptr) {
    file.update(own->components(file, settings, names));
  } else {
    for (const Document& token : value_or_null(file, "added_tokens")) first.push_back(added_token(Json(token), false));
  }

  TokenList tokens(file.at("model"));
  for (Document& token : first) tokens.add(std::move(token));
  std::set<std::string> named;
  for (const auto& [key, token] : names) named.insert(content_of(token));
  for (auto& [id, token] : tokens_of_files(file, settings, path.parent_path())) {
    if (named.contains(token.at("content").get<std::string>())) token["special"] = true;
    tokens.add(token);
  }
  std::vector<Json> special;
  for (const auto& [key, token] : names) special.push_back(token);
  special.insert(special.end(), others.begin(), others.end());
  // Two names may have one token with different flags: the last of those that are not known yet determines them.
  std::vector<Document> unknown;
  for (const Json& token : special) {
    if (!tokens.contains(content_of(token))) unknown.push_back(as_special(token));
  }
  for (Document& token : unknown) tokens.add(std::move(token));
  if (class_name == "Qwen2Tokenizer") {
    for (const Json& token : special) tokens.add(added_token(content_of(token), true));
  }
  file["added_tokens"] = tokens.list();
  if (own != nullptr && own->post_processor != nullptr) {
    file["post_processor"] =
        own->post_processor(settings, names, [&](const std::string& content) { return tokens.id_of(content); });
  }
  if (cleans_texts(settings, file.at("model"))) file["decoder"] = with_cleaning(value_or_null(file, "decoder"));
  file["truncation"] = file["padding"] = nullptr;
  return file;
}

}  // namespace plumb
