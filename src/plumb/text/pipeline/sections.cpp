#include "plumb/text/pipeline/sections.h"

namespace plumb::tokenization {

Json added_token(const std::string& content, int32_t id, bool special, bool whole_word) {
  return {{"id", id},        {"content", content},  {"single_word", whole_word}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

Json bos_before_text(const std::string& bos, int32_t id) {
  const Json first = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
  const auto text = [](const char* which, int segment) {
    return Json{{"Sequence", {{"id", which}, {"type_id", segment}}}};
  };
  Json known;
  known[bos] = {{"id", bos}, {"ids", Json::array({id})}, {"tokens", Json::array({bos})}};
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({first, text("A", 0)})},
          {"pair", Json::array({first, text("A", 0), text("B", 1)})},
          {"special_tokens", known}};
}

}  // namespace plumb::tokenization
