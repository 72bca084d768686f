#include "plumb/text/pipeline/sections.h"

namespace plumb::tokenization {

Json added_token(const std::string& content, int32_t id, bool special, bool whole_word) {
  return {{"id", id},        {"content", content},  {"single_word", whole_word}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

Json around_texts(const NamedToken& before, const NamedToken& after, bool segments) {
  if (before.name.empty() && after.name.empty()) return nullptr;
  Json single = Json::array(), pair = Json::array(), known = Json::object();
  const auto add_token = [&](Json& items, const NamedToken& token, int segment) {
    if (token.name.empty()) return;
    items.push_back({{"SpecialToken", {{"id", token.name}, {"type_id", segment}}}});
    known[token.name] = {{"id", token.name}, {"ids", Json::array({token.id})}, {"tokens", Json::array({token.name})}};
  };
  const auto add_text = [&](Json& items, const char* which, int segment) {
    items.push_back({{"Sequence", {{"id", which}, {"type_id", segment}}}});
    add_token(items, after, segment);
  };
  add_token(single, before, 0);
  add_text(single, "A", 0);
  add_token(pair, before, 0);
  add_text(pair, "A", 0);
  add_text(pair, "B", segments ? 1 : 0);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", known}};
}

}  // namespace plumb::tokenization
