#include "plumb/interop/family.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/nn/position/position.h"

namespace plumb {

Registry<Family>& families() {
  static Registry<Family> registry("model_type");
  return registry;
}

namespace {

/// The class that the weights belong to. Throws Error unless it is one of the family's.
std::string class_of(Settings& settings, const Family& family) {
  const std::vector<std::string> named = settings.texts("architectures");
  const bool known = named.size() == 1 && contains(family.classes, named[0]);
  if (!known) throw settings.unsupported("architectures", join(family.classes));
  return named[0];
}

}  // namespace

DescribedModel described_by(Settings settings) {
  const std::string type = settings.text("model_type");
  if (const auto known = families().names(); !contains(known, type))
    throw settings.unsupported("model_type", join(known));
  const Family& family = families().at(type).make;
  DescribedModel described{type, class_of(settings, family), family.configuration(settings)};
  Settings copy = settings;  // a key that is only checked stays unknown
  (void)positions_of(copy);
  ignore_common_keys(settings);
  settings.require_all_read();
  try {
    validate(described.config);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: what it describes is no model: {}", settings.name(), error.what()),
                error.hint().empty() ? "correct the file, or copy it again" : error.hint());
  }
  return described;
}

ModelConfig imported_decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.embedding_factor = 1;
  return config;
}

void read_decoder_sizes(Settings& settings, ModelConfig& config) {
  config.target_vocabulary = settings.integer("vocab_size");
  config.d_model = settings.integer("hidden_size");
  config.feed_forward = settings.integer("intermediate_size");
  config.decoder_layers = settings.integer("num_hidden_layers");
  config.heads = settings.integer("num_attention_heads");
}

Json decoder_sizes(const ModelConfig& config) {
  return {{"vocab_size", config.target_vocabulary},
          {"hidden_size", config.d_model},
          {"intermediate_size", config.feed_forward},
          {"num_hidden_layers", config.decoder_layers},
          {"num_attention_heads", config.heads}};
}

std::optional<int64_t> positions_of(Settings& settings) {
  std::optional<int64_t> first;
  for (const char* key : {"n_positions", "max_position_embeddings", "n_ctx"}) {
    if (!settings.has(key)) continue;
    const int64_t positions = settings.integer(key);
    if (positions < 1) throw settings.unsupported(key, "a number of tokens, at least 1");
    if (!first) first = positions;
  }
  return first;
}

std::vector<std::string> labels_of(Settings& settings) {
  const char* key = "id2label";
  std::optional<Settings> names = settings.section(key);
  std::vector<std::string> labels;
  if (!names) {
    const int64_t number = settings.integer("num_labels", 2);
    constexpr int64_t kMost = 1'000'000;
    if (number < 1 || number > kMost) throw settings.unsupported("num_labels", "1 to 1000000");
    for (int64_t i = 0; i < number; ++i) labels.push_back(fmt::format("LABEL_{}", i));
    return labels;
  }
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string label = names->text(std::to_string(i));
    if (contains(labels, label))
      throw settings.unsupported(key, fmt::format("a name of its own for each label; '{}' is there twice", label));
    labels.push_back(label);
  }
  settings.require("num_labels", labels.size());
  return labels;
}

void name_labels(const std::vector<std::string>& labels, Json& settings) {
  Json names = Json::object(), ids = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    names[std::to_string(i)] = labels[i];
    ids[labels[i]] = i;
  }
  settings["id2label"] = std::move(names);
  settings["label2id"] = std::move(ids);
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
                   "label2id",
                   "num_labels",
                   "_num_labels",
                   "output_past",
                   "output_scores",
                   "return_dict_in_generate",
                   "use_bfloat16",
                   "min_length",
                   "typical_p",
                   "num_beams",
                   "num_beam_groups",
                   "num_return_sequences",
                   "early_stopping",
                   "length_penalty",
                   "diversity_penalty",
                   "no_repeat_ngram_size",
                   "encoder_no_repeat_ngram_size",
                   "exponential_decay_length_penalty",
                   "bad_words_ids",
                   "forced_bos_token_id",
                   "forced_eos_token_id",
                   "suppress_tokens",
                   "begin_suppress_tokens",
                   "remove_invalid_values",
                   "prefix"});
  settings.require("pruned_heads", Json::object());
  settings.require("repetition_penalty", 1.0);
  settings.require("tie_encoder_decoder", false);
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

std::string plain_activation_name(const ModelConfig& config) {
  return config.activation == "gelu" || config.activation == "relu" ? config.activation : "gelu_new";
}

std::string gated_activation_name(const ModelConfig& config) { return config.activation == "geglu" ? "gelu" : "silu"; }

void read_rotary(Settings& settings, ModelConfig& config, double theta, std::optional<double> of_family) {
  RotaryOptions options;
  options.interleaved = false;
  options.theta = settings.number("rope_theta", theta);
  const auto share_in = [&of_family](Settings& keys, double fallback) {
    const char* key = "partial_rotary_factor";
    const double share = keys.number(key, fallback);
    if (!of_family && share != 1) throw keys.unsupported(key, "1, since this family's models rotate all features");
    return share;
  };
  double share = share_in(settings, of_family.value_or(1));
  std::optional<Settings> scaling = settings.section("rope_parameters");
  std::optional<Settings> older = settings.section("rope_scaling");
  if (scaling && older && *scaling != *older)
    throw settings.unsupported("rope_scaling", "only one of rope_parameters and rope_scaling");
  if (!scaling) scaling = std::move(older);
  if (scaling) {
    options.theta = scaling->number("rope_theta", options.theta);
    share = share_in(*scaling, share);
    const char* kind_key = scaling->has("rope_type") ? "rope_type" : "type";
    scaling->ignore({"rope_type", "type"});
    const std::string kind = scaling->text(kind_key, "default");
    if (kind == "linear" || kind == "llama3") {
      options.scaling = kind;
      options.factor = scaling->number("factor");
    } else if (kind != "default") {
      throw scaling->unsupported(kind_key, "default, linear, llama3");
    }
    if (kind == "llama3") {
      options.low_frequency_factor = scaling->number("low_freq_factor");
      options.high_frequency_factor = scaling->number("high_freq_factor");
      options.original_length = scaling->integer("original_max_position_embeddings");
    }
    scaling->require_all_read();
  }
  const int64_t size = heads_of(config).size;
  const bool sensible = share > 0 && share <= 1;
  const auto features = sensible ? static_cast<int64_t>(std::trunc(static_cast<double>(size) * share)) : int64_t{0};
  if (features < 2 || features % 2 != 0) {
    throw Error(fmt::format("config.json: {} of the {} features of a head cannot be rotated", share, size),
                "partial_rotary_factor, or rotary_pct, must make an even number of them, at least 2");
  }
  if (features < size) options.features = features;
  config.positions = "rotary";
  config.options["rotary"] = Options(options);
}

RotaryOptions rotary_options_of(const ModelConfig& config) {
  return options_of(config.options, "rotary", positions().at("rotary")).as<RotaryOptions>();
}

double rotated_share(const ModelConfig& config) {
  const int64_t features = rotary_options_of(config).features;
  if (features == 0) return 1;
  const auto size = static_cast<double>(heads_of(config).size), wanted = static_cast<double>(features);
  const double share = wanted / size;
  return size * share < wanted ? std::nextafter(share, 1.0) : share;  // readers round the product down
}

void write_rotary(const ModelConfig& config, Json& keys) {
  const RotaryOptions options = rotary_options_of(config);
  keys["rope_theta"] = options.theta;
  if (options.scaling != "linear" && options.scaling != "llama3") return;
  Json scaling = {{"rope_type", options.scaling}, {"factor", options.factor}};
  if (options.scaling == "llama3") {
    scaling["low_freq_factor"] = options.low_frequency_factor;
    scaling["high_freq_factor"] = options.high_frequency_factor;
    scaling["original_max_position_embeddings"] = options.original_length;
  }
  keys["rope_scaling"] = scaling;
}

void take_pair(Weights& weights, const std::string& theirs, const std::string& ours, const std::vector<int64_t>& shape,
               bool bias, NamedTensors& result) {
  result.emplace_back(ours + ".weight", weights.take(theirs + ".weight", shape));
  if (bias) result.emplace_back(ours + ".bias", weights.take(theirs + ".bias", {shape[0]}));
}

void take_stacked(Weights& weights, const std::vector<std::string>& theirs, const std::string& ours,
                  const ModelConfig& config, bool bias, NamedTensors& result) {
  const ops::HeadShape heads = heads_of(config);
  const std::vector<int64_t> rows = {heads.width(), heads.kv_width(), heads.kv_width()};
  std::vector<Tensor> matrices, biases;
  for (size_t i = 0; i < theirs.size(); ++i) {
    matrices.push_back(weights.take(theirs[i] + ".weight", {rows[i], config.d_model}));
    if (bias) biases.push_back(weights.take(theirs[i] + ".bias", {rows[i]}));
  }
  result.emplace_back(ours + ".in_proj_weight", at::cat(matrices));
  if (bias) result.emplace_back(ours + ".in_proj_bias", at::cat(biases));
}

const Tensor& tensor_named(const std::string& name, const NamedTensors& tensors) {
  if (const Tensor* found = find_value(tensors, name)) return *found;
  throw Error(fmt::format("there is no tensor '{}' yet", name));
}

void take_output(Weights& weights, const std::string& theirs, const ModelConfig& config, NamedTensors& result) {
  weights.set_prefix("");
  if (config.share_embeddings == "none") {
    take_pair(weights, theirs, "output", {config.target_vocabulary, config.d_model}, config.output_bias, result);
  } else {
    weights.ignore_copies(theirs + ".weight", tensor_named("tgt_embed.weight", result));
  }
}

}  // namespace plumb
