// Post-processors: templates of special tokens. Names and settings are those of Hugging Face's `tokenizers`.
#include <fmt/format.h>

#include <optional>

#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {

Registry<Maker<Template>>& post_processors() {
  static Registry<Maker<Template>> registry("post-processor");
  return registry;
}

Template make_template(const Settings& settings) {
  if (settings.is_null()) return {};
  return post_processors().at(settings.at("type").get<std::string>()).make(settings);
}

namespace {

int32_t token_id(const Settings& value) {
  const int64_t id = whole_number(value);
  if (id >= Vocabulary::kLargest) throw Error(fmt::format("the id {} of a special token is out of range", id));
  return static_cast<int32_t>(id);
}

/// ["[SEP]", 102]
int32_t special(const Settings& token) {
  if (!token.is_array() || token.size() != 2) throw Error("a special token is not a pair of token and id");
  return token_id(token[1]);
}

/// [CLS] A [SEP] B [SEP]
Template make_bert_template(const Settings& settings) {
  const int32_t sep = special(settings.at("sep"));
  return {.before = {special(settings.at("cls"))}, .after = {sep}, .between = {sep}};
}

/// <s> A </s></s> B </s>
Template make_roberta_template(const Settings& settings) {
  const int32_t sep = special(settings.at("sep"));
  return {.before = {special(settings.at("cls"))}, .after = {sep}, .between = {sep, sep}};
}

/// The special tokens of a template, cut at its texts: those before the first text, and those after each. Throws Error
/// on a text other than those in `known`, one letter each.
std::vector<std::vector<int32_t>> cut_at_texts(const Settings& items, const Settings& special_tokens,
                                               std::string_view known) {
  if (!items.is_array()) throw Error("a template is not a list");
  std::vector<std::vector<int32_t>> tokens(1);
  for (const Settings& item : items) {
    const bool is_text = item.contains("Sequence");
    const auto name = item.at(is_text ? "Sequence" : "SpecialToken").at("id").get<std::string>();
    if (is_text) {
      if (name.size() != 1 || known.find(name) == std::string_view::npos)
        throw Error(fmt::format("unknown text '{}' in a template", name),
                    "A is the first text, B the second of a pair");
      tokens.emplace_back();
    } else {
      if (!special_tokens.contains(name)) throw Error(fmt::format("a template lacks the ids of '{}'", name));
      for (const Settings& id : parts(special_tokens.at(name), "ids")) tokens.back().push_back(token_id(id));
    }
  }
  return tokens;
}

Template make_described_template(const Settings& settings) {
  const Settings& special_tokens = settings.at("special_tokens");
  const auto single = cut_at_texts(settings.at("single"), special_tokens, "A");
  const auto pair = cut_at_texts(settings.at("pair"), special_tokens, "AB");
  if (single.size() != 2) throw Error("the template for a single text does not contain it exactly once");
  return {.before = single[0], .after = single[1], .between = pair.size() > 2 ? pair[1] : std::vector<int32_t>()};
}

/// The only processor that adds tokens; the others change offsets, which Plumb does not compute.
Template make_sequence_of_post_processors(const Settings& settings) {
  std::optional<Template> chosen;
  for (const Settings& part : parts(settings, "processors")) {
    if (part.at("type") == "ByteLevel") continue;
    if (chosen) throw Error("a sequence of several post-processors that add tokens is not supported");
    chosen = make_template(part);
  }
  return chosen.value_or(Template());
}

[[maybe_unused]] const bool kPostProcessorsRegistered = [] {
  auto& all = post_processors();
  all.add("BertProcessing", "[CLS] A [SEP] B [SEP]", "Devlin et al., arXiv 1810.04805", make_bert_template);
  all.add("ByteLevel", "no special tokens", "", [](const Settings&) { return Template(); });
  all.add("RobertaProcessing", "<s> A </s></s> B </s>", "Liu et al., arXiv 1907.11692", make_roberta_template);
  all.add("Sequence", "one after the other", "", make_sequence_of_post_processors);
  all.add("TemplateProcessing", "as described", "", make_described_template);
  return true;
}();

}  // namespace
}  // namespace plumb::tokenization
