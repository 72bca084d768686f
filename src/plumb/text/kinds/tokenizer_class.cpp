#include "plumb/text/kinds/tokenizer_class.h"

#include <map>
#include <set>

#include "plumb/text/kinds/special_tokens.h"

namespace plumb {
namespace {

/// The classes by the names that they go by.
const std::map<std::string, std::string, std::less<>>& classes() {
  static const std::map<std::string, std::string, std::less<>> known = {{"BertTokenizer", "BertTokenizer"},
                                                                        {"DistilBertTokenizer", "BertTokenizer"},
                                                                        {"ElectraTokenizer", "BertTokenizer"},
                                                                        {"LayoutLMTokenizer", "BertTokenizer"},
                                                                        {"LxmertTokenizer", "BertTokenizer"},
                                                                        {"MobileBertTokenizer", "BertTokenizer"},
                                                                        {"SqueezeBertTokenizer", "BertTokenizer"},
                                                                        {"GPT2Tokenizer", "GPT2Tokenizer"},
                                                                        {"GPTNeoXTokenizer", "GPTNeoXTokenizer"},
                                                                        {"RobertaTokenizer", "RobertaTokenizer"},
                                                                        {"BartTokenizer", "RobertaTokenizer"},
                                                                        {"LEDTokenizer", "RobertaTokenizer"},
                                                                        {"LongformerTokenizer", "RobertaTokenizer"},
                                                                        {"XLMRobertaTokenizer", "XLMRobertaTokenizer"},
                                                                        {"T5Tokenizer", "T5Tokenizer"},
                                                                        {"LlamaTokenizer", "LlamaTokenizer"},
                                                                        {"GemmaTokenizer", "GemmaTokenizer"},
                                                                        {"Qwen2Tokenizer", "Qwen2Tokenizer"},
                                                                        {"AlbertTokenizer", "AlbertTokenizer"},
                                                                        {"CamembertTokenizer", "CamembertTokenizer"},
                                                                        {"MBartTokenizer", "MBartTokenizer"},
                                                                        {"CodeLlamaTokenizer", "CodeLlamaTokenizer"},
                                                                        {"CohereTokenizer", "CohereTokenizer"}};
  return known;
}

/// The class for models of a type, where no file names one.
const std::map<std::string, std::string, std::less<>>& classes_of_models() {
  static const auto* const known = [] {
    auto* all = new std::map<std::string, std::string, std::less<>>();
    const auto add = [&](const char* name, std::initializer_list<const char*> types) {
      for (const char* type : types) all->emplace(type, name);
    };
    add("BertTokenizer", {"bert", "convbert", "distilbert", "electra", "ernie", "layoutlm", "megatron-bert", "nezha",
                          "nomic_bert", "squeezebert"});
    add("RobertaTokenizer", {"bart", "data2vec-text", "ibert", "longformer", "roberta", "roberta-prelayernorm"});
    add("XLMRobertaTokenizer", {"gte", "jina_embeddings_v3", "xlm-roberta", "xmod"});
    add("GPT2Tokenizer", {"codegen", "dbrx", "gpt2", "gpt_neo", "gptj", "jais2", "opt", "phi", "starcoder2"});
    add("GPTNeoXTokenizer", {"falcon_mamba", "gpt_neox", "mamba", "mamba2", "mpt", "olmo", "olmoe", "rwkv", "xlstm"});
    add("GemmaTokenizer", {"gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma", "t5gemma"});
    add("T5Tokenizer", {"mt5", "switch_transformers", "t5"});
    add("AlbertTokenizer", {"albert", "yoso"});
    add("CamembertTokenizer", {"camembert"});
    add("MBartTokenizer", {"mbart"});
    add("CodeLlamaTokenizer", {"code_llama"});
    add("CohereTokenizer", {"aya_vision", "cohere", "cohere2"});
    add("Qwen2Tokenizer", {"qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next"});
    return all;
  }();
  return *known;
}

/// Whether the file is taken as it is for models of this type, whatever class is named.
bool takes_file_as_it_is(const std::string& model_type) {
  static const std::set<std::string> known = {"arctic",
                                              "ernie4_5",
                                              "ernie4_5_moe",
                                              "flex_olmo",
                                              "glm",
                                              "glm4",
                                              "glm4_moe",
                                              "gpt_bigcode",
                                              "granite",
                                              "granitemoe",
                                              "granitemoehybrid",
                                              "granitemoeshared",
                                              "hyperclovax",
                                              "internlm2",
                                              "internlm3",
                                              "jamba",
                                              "kimi_linear",
                                              "minicpm3",
                                              "minimax_m2",
                                              "ministral",
                                              "ministral3",
                                              "mistral",
                                              "mistral3",
                                              "mixtral",
                                              "modernbert",
                                              "modernbert-decoder",
                                              "nemotron",
                                              "nystromformer",
                                              "olmo2",
                                              "olmo3",
                                              "olmo_hybrid",
                                              "persimmon",
                                              "phi3",
                                              "phimoe",
                                              "stablelm",
                                              "umt5",
                                              "xlm-roberta-xl"};
  return known.contains(model_type);
}

std::string text_or_empty(const Json& settings, const char* name) {
  const auto found = settings.find(name);
  return found == settings.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

/// The class with this name; empty if Plumb does not know it.
std::string class_named(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  const auto found = classes().find(name);
  return found == classes().end() ? std::string() : found->second;
}

}  // namespace

std::string tokenizer_class_in(const std::filesystem::path& folder, const Json& settings, std::string_view bytes) {
  const Json model = object_in(folder / "config.json");
  const std::string model_type = text_or_empty(model, "model_type");
  if (takes_file_as_it_is(model_type)) return {};
  const auto usual = classes_of_models().find(model_type);
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
