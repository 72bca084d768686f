// Tokenizers given as lists of tokens: BERT's `vocab.txt`, and GPT-2's vocabulary with its merges. Both are converted
// to the equivalent `tokenizer.json`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/base/utf8.h"
#include "plumb/text/kinds/class_components.h"
#include "plumb/text/kinds/pipeline.h"
#include "plumb/text/kinds/special_tokens.h"

namespace plumb {
namespace {

std::vector<std::string> lines_of(std::string_view bytes) {
  std::vector<std::string> lines = split(bytes, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  return lines;
}

nlohmann::json special_token(const std::string& content) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", true}};
}

std::shared_ptr<const TokenizerModel> load_bert(std::string bytes, const std::filesystem::path& path) {
  if (!is_valid_utf8(bytes)) throw Error(fmt::format("{}: not valid UTF-8", path.string()));
  nlohmann::json vocabulary = nlohmann::json::object();
  size_t id = 0;
  for (const std::string& token : lines_of(bytes)) vocabulary[token] = id++;

  const Json settings = settings_beside(path);
  const auto name_of = [&](const char* key, const char* usual) {
    const std::string name = settings.contains(key) ? content_of(settings.at(key)) : std::string();
    return name.empty() ? std::string(usual) : name;
  };
  const std::string unknown = name_of("unk_token", "[UNK]");
  const std::string cls = name_of("cls_token", "[CLS]");
  const std::string sep = name_of("sep_token", "[SEP]");
  nlohmann::json added = nlohmann::json::array();
  for (const auto& token : {unknown, sep, name_of("pad_token", "[PAD]"), cls, name_of("mask_token", "[MASK]")}) {
    if (vocabulary.contains(token)) added.push_back(special_token(token));
  }
  nlohmann::json processor;
  if (vocabulary.contains(cls) && vocabulary.contains(sep)) {
    processor = {{"type", "BertProcessing"}, {"sep", {sep, vocabulary[sep]}}, {"cls", {cls, vocabulary[cls]}}};
  }
  nlohmann::json document = word_piece_components(settings, unknown, vocabulary);
  document.update({{"version", "1.0"}, {"added_tokens", added}, {"post_processor", processor}});
  return make_pipeline(document.dump(), path);
}

std::shared_ptr<const TokenizerModel> load_gpt2(std::string bytes, const std::filesystem::path& path) {
  std::filesystem::path vocabulary_path = path.parent_path() / "vocab.json";
  if (!std::filesystem::exists(vocabulary_path)) vocabulary_path = path.parent_path() / "encoder.json";
  if (!std::filesystem::exists(vocabulary_path)) {
    throw Error(fmt::format("{}: there is no vocab.json beside it", path.string()),
                "put the vocab.json of these merges there");
  }
  if (!is_valid_utf8(bytes)) throw Error(fmt::format("{}: not valid UTF-8", path.string()));
  const nlohmann::json vocabulary = read_json(vocabulary_path);
  nlohmann::json merges = nlohmann::json::array();
  for (const std::string& line : lines_of(bytes)) {
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
  }
  const Json settings = settings_beside(path);
  const bool prefix = setting_or(settings, "add_prefix_space", false);
  const auto kind = setting_or<std::string>(settings, "tokenizer_class", "GPT2Tokenizer");
  const auto has = [&](const std::string& token) { return vocabulary.is_object() && vocabulary.contains(token); };
  nlohmann::json added = nlohmann::json::array();
  nlohmann::json processor;
  if (kind.starts_with("Roberta") && has("<s>") && has("</s>")) {
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) {
      if (has(token)) added.push_back(special_token(token));
    }
    if (has("<mask>")) {
      added.push_back(special_token("<mask>"));
      added.back()["lstrip"] = true;
    }
    processor = {
        {"type", "RobertaProcessing"}, {"sep", {"</s>", vocabulary["</s>"]}}, {"cls", {"<s>", vocabulary["<s>"]}}};
  } else if (has("<|endoftext|>")) {
    added.push_back(special_token("<|endoftext|>"));
  }
  const nlohmann::json document = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}}},
      {"post_processor", processor},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  return make_pipeline(document.dump(), path);
}

[[maybe_unused]] const bool kVocabularyFilesRegistered = [] {
  auto& kinds = tokenizer_kinds();
  kinds.add("bert", "BERT's vocab.txt: WordPiece", "Devlin et al., arXiv 1810.04805",
            {.files = {"vocab.txt"},
             .precedence = 1,
             .recognizes =
                 [](std::string_view bytes) {
                   return bytes.starts_with("[PAD]") || bytes.starts_with("[UNK]") ||
                          bytes.find("\n[UNK]") != std::string_view::npos;
                 },
             .load = load_bert});
  kinds.add("gpt2", "GPT-2's and RoBERTa's merges.txt beside its vocab.json: byte-level BPE", "Radford et al. 2019",
            {.files = {"merges.txt", "vocab.bpe"},
             .precedence = 3,
             .recognizes = [](std::string_view bytes) { return bytes.starts_with("#version"); },
             .load = load_gpt2});
  return true;
}();

}  // namespace
}  // namespace plumb
