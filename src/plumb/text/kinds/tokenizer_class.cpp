#include "plumb/text/kinds/tokenizer_class.h"

#include <map>

#include "plumb/text/kinds/class_components.h"
#include "plumb/text/kinds/special_tokens.h"

namespace plumb {
namespace {

/// The class for models of a type, where no file names one; empty if the file is then taken as it is. Types that are
/// not here cannot be imported, or take the file as it is whatever class is named.
const std::map<std::string, std::string>& classes_of_models() {
  static const std::map<std::string, std::string> names = {{"bert", "BertTokenizer"},
                                                           {"distilbert", "BertTokenizer"},
                                                           {"gpt2", "GPT2Tokenizer"},
                                                           {"gpt_neox", "GPTNeoXTokenizer"},
                                                           {"llama", ""},
                                                           {"marian", ""},
                                                           {"qwen2", "Qwen2Tokenizer"},
                                                           {"qwen3", "Qwen2Tokenizer"},
                                                           {"roberta", "RobertaTokenizer"},
                                                           {"t5", "T5Tokenizer"},
                                                           {"xlm-roberta", "XLMRobertaTokenizer"}};
  return names;
}

std::string text_or_empty(const Json& settings, const char* name) {
  const Json& value = value_or_null(settings, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// The class with this name; empty if Plumb does not know it.
std::string class_named(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name == "DistilBertTokenizer") name = "BertTokenizer";
  return tokenizer_class_named(std::string(name)) == nullptr ? std::string() : std::string(name);
}

}  // namespace

std::string tokenizer_class_in(const std::filesystem::path& folder, const Json& settings, std::string_view bytes) {
  const Json model = object_in(folder / "config.json");
  const std::string model_type = text_or_empty(model, "model_type");
  const auto usual = classes_of_models().find(model_type);
  if (!model_type.empty() && usual == classes_of_models().end()) return {};
  if (model_type == "qwen2") return usual->second;  // published files name others, so none is trusted
  std::string name = text_or_empty(settings, "tokenizer_class");
  if (name.empty()) name = text_or_empty(model, "tokenizer_class");
  if (name.empty()) return usual == classes_of_models().end() ? std::string() : usual->second;
  std::string known = class_named(name);
  // Models of the later Llamas name the class of the first ones.
  if (known == "LlamaTokenizer" && bytes.find("\"ByteLevel\"") != std::string_view::npos) return {};
  return known;
}

}  // namespace plumb
