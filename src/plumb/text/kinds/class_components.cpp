#include "plumb/text/kinds/class_components.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/base/error.h"
#include "plumb/text/kinds/special_tokens.h"
#include "plumb/text/visible.h"

namespace plumb {
namespace {

using Document = nlohmann::json;  // sorts keys: with many, ordered JSON is slow

/// The vocabulary as tokens with ids, whatever kind of model the file has.
Document vocabulary_with_ids(const Document& file) {
  const Document& vocabulary = file.at("model").at("vocab");
  if (vocabulary.is_object()) return vocabulary;
  Document ids = Document::object();
  int64_t id = 0;
  for (const Document& token : vocabulary) ids[(token.is_array() ? token.at(0) : token).get<std::string>()] = id++;
  return ids;
}

Document byte_pair_model(const Document& file, const Document& unknown, bool fuses_unknown, bool byte_fallback) {
  Document merges = value_or_null(file.at("model"), "merges");
  if (merges.is_null()) merges = Document::array();
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", fuses_unknown},
          {"byte_fallback", byte_fallback},
          {"ignore_merges", false},
          {"vocab", vocabulary_with_ids(file)},
          {"merges", std::move(merges)}};
}

Document unigram_model(const Document& file, int64_t unknown) {
  const Document& vocabulary = file.at("model").at("vocab");
  if (!vocabulary.is_array()) throw Error("its vocabulary has no scores, which the tokenizer_class needs");
  return {{"type", "Unigram"}, {"unk_id", unknown}, {"vocab", vocabulary}, {"byte_fallback", false}};
}

Document byte_level(bool prefix, bool words) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", words}};
}

/// SentencePiece's compiled rules in the file's normalizer, or null.
Document compiled_rules(const Document& file) {
  const Document& normalizer = value_or_null(file, "normalizer");
  if (!normalizer.is_object()) return nullptr;
  const Document& parts = value_or_null(normalizer, "normalizers");
  for (const Document& part : parts.is_array() ? parts : Document::array({normalizer})) {
    if (part.is_object() && value_or_null(part, "type") == "Precompiled" && part.contains("precompiled_charsmap"))
      return {{"type", "Precompiled"}, {"precompiled_charsmap", part.at("precompiled_charsmap")}};
  }
  return nullptr;
}

Document metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"}, {"replacement", kVisibleSpace}, {"prepend_scheme", scheme}, {"split", split}};
}

Document replace_literal(const char* what, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

/// {"SpecialToken": …} or, for "A" and "B", {"Sequence": …}; each item is a token's content and the segment.
using TemplateItems = std::vector<std::pair<std::string, int>>;
Document template_processing(const TemplateItems& single, const TemplateItems& pair,
                             const std::vector<std::pair<std::string, int64_t>>& tokens) {
  Document known = Document::object();
  for (const auto& [token, id] : tokens)
    known[token] = {{"id", token}, {"ids", Document::array({id})}, {"tokens", Document::array({token})}};
  const auto list = [&](const TemplateItems& items) {
    Document result = Document::array();
    for (const auto& [name, segment] : items)
      result.push_back({{known.contains(name) ? "SpecialToken" : "Sequence", {{"id", name}, {"type_id", segment}}}});
    return result;
  };
  return {{"type", "TemplateProcessing"}, {"single", list(single)}, {"pair", list(pair)}, {"special_tokens", known}};
}

using IdOf = std::function<int64_t(const std::string&)>;

Document bert_components(const Document& file, const Json& settings, const NamedTokens& names) {
  return word_piece_components(settings, named_token(names, "unk_token"), vocabulary_with_ids(file));
}

Document bert_post_processor(const Json&, const NamedTokens& names, const IdOf& id_of) {
  const std::string cls = named_token(names, "cls_token");
  const std::string sep = named_token(names, "sep_token");
  return template_processing({{cls, 0}, {"A", 0}, {sep, 0}}, {{cls, 0}, {"A", 0}, {sep, 0}, {"B", 1}, {sep, 1}},
                             {{cls, id_of(cls)}, {sep, id_of(sep)}});
}

Document gpt2_components(const Document& file, const Json& settings, const NamedTokens&) {
  return {{"normalizer", nullptr},
          {"pre_tokenizer", byte_level(setting_or(settings, "add_prefix_space", false), true)},
          {"decoder", byte_level(true, true)},
          {"model", byte_pair_model(file, nullptr, false, false)}};
}

Document gpt_neox_components(const Document& file, const Json& settings, const NamedTokens& names) {
  Document components = gpt2_components(file, settings, names);
  components["normalizer"] = {{"type", "NFC"}};
  return components;
}

Document no_special_tokens(const Json&, const NamedTokens&, const IdOf&) {
  return template_processing({{"A", 0}}, {{"A", 0}, {"B", 1}}, {});
}

Document roberta_post_processor(const Json&, const NamedTokens& names, const IdOf& id_of) {
  const std::string sep = named_token(names, "sep_token");
  const std::string cls = named_token(names, "cls_token");
  return {{"type", "RobertaProcessing"},
          {"sep", Document::array({sep, id_of(sep)})},
          {"cls", Document::array({cls, id_of(cls)})},
          {"trim_offsets", true},
          {"add_prefix_space", false}};
}

Document pieces_of_words(const Document& file, int64_t unknown, const char* scheme) {
  return {{"normalizer", compiled_rules(file)},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers", Document::array({{{"type", "WhitespaceSplit"}}, metaspace(scheme, true)})}}},
          {"decoder", metaspace(scheme, true)},
          {"model", unigram_model(file, unknown)}};
}

Document xlm_roberta_components(const Document& file, const Json& settings, const NamedTokens&) {
  return pieces_of_words(file, 3, setting_or(settings, "add_prefix_space", true) ? "always" : "never");
}

Document xlm_roberta_post_processor(const Json&, const NamedTokens& names, const IdOf& id_of) {
  const std::string bos = named_token(names, "bos_token");
  const std::string eos = named_token(names, "eos_token");
  return template_processing({{bos, 0}, {"A", 0}, {eos, 0}},
                             {{bos, 0}, {"A", 0}, {eos, 0}, {eos, 0}, {"B", 0}, {eos, 0}},
                             {{bos, id_of(bos)}, {eos, id_of(eos)}});
}

Document t5_components(const Document& file, const Json&, const NamedTokens&) {
  return pieces_of_words(file, 2, "always");
}

Document t5_post_processor(const Json&, const NamedTokens& names, const IdOf& id_of) {
  return template_processing({{"A", 0}, {"</s>", 0}}, {{"A", 0}, {"</s>", 0}, {"B", 0}, {"</s>", 0}},
                             {{"</s>", id_of(named_token(names, "eos_token"))}});
}

std::vector<Json> t5_tokens(const Json& settings) {
  std::vector<Json> tokens;
  const int64_t extra = std::min<int64_t>(setting_or(settings, "extra_ids", int64_t{100}), 100'000);
  for (int64_t i = 0; i < extra; ++i) tokens.emplace_back(fmt::format("<extra_id_{}>", i));
  return tokens;
}

/// Pieces with byte fallback; the decoder turns visible spaces into spaces.
Document llama_components(const Document& file, const Json& settings, const NamedTokens&) {
  const bool prefix = setting_or(settings, "add_prefix_space", true);
  const char* scheme = setting_or(settings, "legacy", false) ? "always" : "first";
  Document decoders =
      Document::array({replace_literal(kVisibleSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"normalizer", nullptr},
          {"pre_tokenizer", metaspace(prefix ? scheme : "never", false)},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
          {"model", byte_pair_model(file, nullptr, true, true)}};
}

constexpr const char* kWordsOfQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Document qwen2_components(const Document& file, const Json& settings, const NamedTokens&) {
  const Document words = {
      {"type", "Split"}, {"pattern", {{"Regex", kWordsOfQwen}}}, {"behavior", "Isolated"}, {"invert", false}};
  return {{"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             Document::array({words, byte_level(setting_or(settings, "add_prefix_space", false), false)})}}},
          {"decoder", byte_level(true, true)},
          {"model", byte_pair_model(file, nullptr, false, false)}};
}

const std::map<std::string, TokenizerClass>& all_classes() {
  static const NamedTokens kSentence = {{"bos_token", "<s>"},    {"eos_token", "</s>"},  {"unk_token", "<unk>"},
                                        {"sep_token", "</s>"},   {"pad_token", "<pad>"}, {"cls_token", "<s>"},
                                        {"mask_token", "<mask>"}};
  static const char* const kEnd = "<|endoftext|>";
  static const std::map<std::string, TokenizerClass> all = {
      {"BertTokenizer",
       {{{"unk_token", "[UNK]"},
         {"sep_token", "[SEP]"},
         {"pad_token", "[PAD]"},
         {"cls_token", "[CLS]"},
         {"mask_token", "[MASK]"}},
        bert_components,
        bert_post_processor}},
      {"GPT2Tokenizer", {{{"bos_token", kEnd}, {"eos_token", kEnd}, {"unk_token", kEnd}}, gpt2_components}},
      {"GPTNeoXTokenizer",
       {{{"bos_token", kEnd}, {"eos_token", kEnd}, {"unk_token", kEnd}, {"pad_token", "<|padding|>"}},
        gpt_neox_components,
        no_special_tokens}},
      {"RobertaTokenizer", {kSentence, gpt2_components, roberta_post_processor}},
      {"XLMRobertaTokenizer", {kSentence, xlm_roberta_components, xlm_roberta_post_processor}},
      {"T5Tokenizer",
       {{{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}},
        t5_components,
        t5_post_processor,
        t5_tokens}},
      {"LlamaTokenizer",
       {.defaults = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}},
        .components = llama_components,
        .pads_as_file_says = true}},
      {"Qwen2Tokenizer", {{{"eos_token", kEnd}, {"unk_token", kEnd}, {"pad_token", kEnd}}, qwen2_components}}};
  return all;
}

}  // namespace

std::string named_token(const NamedTokens& names, const std::string& key) {
  for (const auto& [name, token] : names) {
    if (name == key && !content_of(token).empty()) return content_of(token);
  }
  throw Error(fmt::format("tokenizer_config.json has no {}", key), "name the token, or omit the key");
}

Document word_piece_components(const Json& settings, const std::string& unknown, const Document& vocabulary) {
  Document accents;
  if (settings.contains("strip_accents") && !settings.at("strip_accents").is_null())
    accents = setting_or(settings, "strip_accents", false);
  return {{"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", setting_or(settings, "tokenize_chinese_chars", true)},
            {"strip_accents", accents},
            {"lowercase", setting_or(settings, "do_lower_case", true)}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", unknown},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary}}}};
}

const TokenizerClass* tokenizer_class_named(const std::string& name) {
  const auto entry = all_classes().find(name);
  return entry == all_classes().end() ? nullptr : &entry->second;
}

}  // namespace plumb
