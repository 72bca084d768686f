#include "plumb/interop/family.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/toml_text.h"

namespace plumb {

Registry<Family>& families() {
  static Registry<Family> registry("model_type");
  return registry;
}

ModelConfig imported_decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.embedding_factor = 1;
  return config;
}

void ignore_common_keys(Settings& settings) {
  settings.ignore({"architectures",
                   "model_type",
                   "transformers_version",
                   "_name_or_path",
                   "torch_dtype",
                   "dtype",
                   "_attn_implementation_autoset",
                   "attn_implementation",
                   "torchscript",
                   "use_cache",
                   "initializer_range",
                   "gradient_checkpointing",
                   "chunk_size_feed_forward",
                   "tokenizer_class",
                   "bos_token_id",
                   "eos_token_id",
                   "pad_token_id",
                   "sep_token_id",
                   "cls_token_id",
                   "unk_token_id",
                   "output_attentions",
                   "output_hidden_states",
                   "return_dict",
                   "use_return_dict",
                   "finetuning_task",
                   "task_specific_params",
                   "max_length",
                   "temperature",
                   "top_k",
                   "top_p",
                   "do_sample",
                   "classifier_dropout",
                   "problem_type",
                   "id2label",
                   "label2id"});
}

std::string plain_activation(Settings& settings, const std::string& key) {
  const std::string name = settings.text(key);
  if (name == "gelu" || name == "gelu_python") return "gelu";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return "gelu-tanh";
  if (name == "relu") return "relu";
  throw settings.unsupported(key, "gelu, gelu_python, gelu_new, gelu_pytorch_tanh, gelu_fast, relu");
}

std::string gated_activation(Settings& settings, const std::string& key) {
  const std::string name = settings.text(key, "silu");
  if (name == "silu" || name == "swish") return "swiglu";
  if (name == "gelu" || name == "gelu_python") return "geglu";
  throw settings.unsupported(key, "silu, swish, gelu, gelu_python");
}

int64_t head_size_of(const ModelConfig& config) {
  if (config.head_size > 0) return config.head_size;
  return config.heads > 0 ? config.d_model / config.heads : 0;  // no heads at all are refused with the configuration
}

void read_rotary(Settings& settings, ModelConfig& config, double theta, double share) {
  Config options;
  const auto set = [&options](const char* key, const auto& value) {
    options.set(fmt::format("model.rotary.{}={}", key, toml_text(value)));
  };
  theta = settings.number("rope_theta", theta);
  share = settings.number("partial_rotary_factor", share);
  std::optional<Settings> scaling = settings.section("rope_parameters");
  const std::optional<Settings> older = settings.section("rope_scaling");
  if (!scaling) scaling = older;
  if (scaling) {
    theta = scaling->number("rope_theta", theta);
    share = scaling->number("partial_rotary_factor", share);
    const char* kind_key = scaling->has("rope_type") ? "rope_type" : "type";
    scaling->ignore({"rope_type", "type"});
    const std::string kind = scaling->text(kind_key, "default");
    if (kind == "linear" || kind == "llama3") {
      set("scaling", kind);
      set("factor", scaling->number("factor"));
    } else if (kind != "default") {
      throw scaling->unsupported(kind_key, "default, linear, llama3");
    }
    if (kind == "llama3") {
      set("low_frequency_factor", scaling->number("low_freq_factor"));
      set("high_frequency_factor", scaling->number("high_freq_factor"));
      set("original_length", scaling->integer("original_max_position_embeddings"));
    }
    scaling->finish();
  }
  const int64_t size = head_size_of(config);
  const bool sensible = share > 0 && share <= 1;
  const auto features = sensible ? static_cast<int64_t>(std::trunc(static_cast<double>(size) * share)) : int64_t{0};
  if (features < 2 || features % 2 != 0) {
    throw Error(fmt::format("config.json: {} of the {} features of a head cannot be rotated", share, size),
                "partial_rotary_factor, or rotary_pct, must make an even number of them, at least 2");
  }
  set("theta", theta);
  set("interleaved", false);
  if (features < size) set("features", features);
  config.positions = "rotary";
  options.read("model", config);
}

void take_pair(Weights& weights, const std::string& theirs, const std::string& ours, const std::vector<int64_t>& shape,
               bool bias, NamedTensors& result) {
  result.emplace_back(ours + ".weight", weights.take(theirs + ".weight", shape));
  if (bias) result.emplace_back(ours + ".bias", weights.take(theirs + ".bias", {shape[0]}));
}

void take_stacked(Weights& weights, const std::vector<std::string>& theirs, const std::string& ours,
                  const ModelConfig& config, bool bias, NamedTensors& result) {
  const int64_t size = head_size_of(config);
  const int64_t kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads;
  const std::vector<int64_t> rows = {config.heads * size, kv_heads * size, kv_heads * size};
  std::vector<Tensor> matrices, biases;
  for (size_t i = 0; i < theirs.size(); ++i) {
    matrices.push_back(weights.take(theirs[i] + ".weight", {rows[i], config.d_model}));
    if (bias) biases.push_back(weights.take(theirs[i] + ".bias", {rows[i]}));
  }
  result.emplace_back(ours + ".in_proj_weight", at::cat(matrices));
  if (bias) result.emplace_back(ours + ".in_proj_bias", at::cat(biases));
}

void take_output(Weights& weights, const std::string& theirs, const ModelConfig& config, NamedTensors& result) {
  weights.set_prefix("");
  if (config.share_embeddings == "none") {
    take_pair(weights, theirs, "output", {config.target_vocabulary, config.d_model}, config.output_bias, result);
  } else {
    weights.ignore(theirs + ".weight");
  }
}

}  // namespace plumb
