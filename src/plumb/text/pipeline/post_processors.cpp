// Post-processors: templates of special tokens. Names and settings are those of Hugging Face's `tokenizers`.
#include <fmt/format.h>

#include <optional>

#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/settings.h"

namespace plumb::tokenization {

Registry<Maker<Templates>>& post_processors() {
  static Registry<Maker<Templates>> registry("post-processor");
  return registry;
}

Templates make_templates(const Settings& settings) {
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
Template::Item special(const Settings& token, int32_t segment = 0) {
  if (!token.is_array() || token.size() != 2) throw Error("a special token is not a pair of token and id");
  return {.tokens = {token_id(token[1])}, .segment = segment};
}

/// [CLS] A [SEP] B [SEP]
Templates make_bert_templates(const Settings& settings) {
  const Settings& sep = settings.at("sep");
  const Template single{{special(settings.at("cls")), {.text = 0}, special(sep)}};
  Template pair = single;
  pair.items.push_back({.text = 1, .segment = 1});
  pair.items.push_back(special(sep, 1));
  return {single, pair};
}

/// <s> A </s></s> B </s>, all in one segment.
Templates make_roberta_templates(const Settings& settings) {
  const Template::Item sep = special(settings.at("sep"));
  const Template single{{special(settings.at("cls")), {.text = 0}, sep}};
  Template pair = single;
  pair.items.push_back(sep);
  pair.items.push_back({.text = 1});
  pair.items.push_back(sep);
  return {single, pair};
}

Template read_template(const Settings& items, const Settings& special_tokens) {
  if (!items.is_array()) throw Error("a template is not a list");
  Template result;
  for (const Settings& item : items) {
    const bool is_text = item.contains("Sequence");
    const Settings& part = item.at(is_text ? "Sequence" : "SpecialToken");
    const auto segment = token_id(part.at("type_id"));
    const auto name = part.at("id").get<std::string>();
    if (is_text) {
      if (name != "A" && name != "B") throw Error(fmt::format("unknown text '{}' in a template", name), "known: A, B");
      result.items.push_back({.text = name == "A" ? 0 : 1, .segment = segment});
    } else {
      if (!special_tokens.contains(name)) throw Error(fmt::format("a template lacks the ids of '{}'", name));
      Template::Item tokens{.segment = segment};
      for (const Settings& id : parts(special_tokens.at(name), "ids")) tokens.tokens.push_back(token_id(id));
      result.items.push_back(tokens);
    }
  }
  return result;
}

Templates make_described_templates(const Settings& settings) {
  const Settings& special_tokens = settings.at("special_tokens");
  Templates templates{read_template(settings.at("single"), special_tokens),
                      read_template(settings.at("pair"), special_tokens)};
  for (const Template::Item& item : templates.single.items) {
    if (item.text == 1) throw Error("the template for a single text contains a second one");
  }
  return templates;
}

/// The only processor that adds tokens; the others change offsets, which Plumb does not compute.
Templates make_sequence_of_templates(const Settings& settings) {
  std::optional<Templates> chosen;
  for (const Settings& part : parts(settings, "processors")) {
    if (part.at("type") == "ByteLevel") continue;
    if (chosen) throw Error("a sequence of several post-processors that add tokens is not supported");
    chosen = make_templates(part);
  }
  return chosen.value_or(Templates());
}

[[maybe_unused]] const bool kPostProcessorsRegistered = [] {
  auto& all = post_processors();
  all.add("BertProcessing", "[CLS] A [SEP] B [SEP]", "Devlin et al., arXiv 1810.04805", make_bert_templates);
  all.add("ByteLevel", "no special tokens", "", [](const Settings&) { return Templates(); });
  all.add("RobertaProcessing", "<s> A </s></s> B </s>", "Liu et al., arXiv 1907.11692", make_roberta_templates);
  all.add("Sequence", "one after the other", "", make_sequence_of_templates);
  all.add("TemplateProcessing", "as described", "", make_described_templates);
  return true;
}();

}  // namespace
}  // namespace plumb::tokenization
