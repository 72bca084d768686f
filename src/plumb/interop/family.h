// Families of models that can be imported and exported: what their config.json and the names of their tensors mean.
// Each family is one file in interop/families, which registers it under its model_type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/interop/settings.h"
#include "plumb/interop/weights.h"
#include "plumb/model/config.h"
#include "plumb/nn/position/rotary.h"

namespace plumb {

struct Family {
  std::vector<std::string> classes;  // those of `transformers` that are known: "GPT2LMHeadModel"
  /// The configuration of the same model. Asks for every key that it knows.
  ModelConfig (*configuration)(Settings& settings);
  /// The tensors under Plumb's names, taken from those of the folder. Every number goes to one place, as it is or
  /// times a constant; the export inverts this map.
  NamedTensors (*tensors)(const ModelConfig& config, Weights& weights);
  /// The reverse of `configuration`: the keys of config.json, apart from model_type and, unless the first of `classes`
  /// is not the one, architectures. What the family cannot express need not be noticed: the export reads the keys back
  /// and compares. Null: only the import is known.
  Json (*settings)(const ModelConfig& config) = nullptr;
};

/// By model_type.
Registry<Family>& families();

/// The model that a config.json describes.
struct DescribedModel {
  std::string family;  // model_type
  std::string model;   // the class of `transformers`
  ModelConfig config;  // valid
};

/// Throws Error that names what is unknown: the architecture, a key that may change what the model computes, or a
/// value.
DescribedModel described_by(Settings settings);

// What families have in common.

/// A decoder with embeddings as they are, and nothing else decided.
ModelConfig imported_decoder();

/// vocab_size, hidden_size, intermediate_size, num_hidden_layers and num_attention_heads of a decoder, and the reverse.
void read_decoder_sizes(Settings& settings, ModelConfig& config);
Json decoder_sizes(const ModelConfig& config);

/// Writes id2label and label2id, the names of a classifier's labels.
void name_labels(const std::vector<std::string>& labels, Json& settings);

/// Ignores the keys that any config.json may have and that do not change what a model computes: special tokens, names,
/// element types, dropout of parts, settings of generation.
void ignore_common_keys(Settings& settings);

/// model.activation for two matrices and for a gated unit, from the activation's name in `key`. Throws Error if Plumb
/// has no such activation.
std::string plain_activation(Settings& settings, const std::string& key);
std::string gated_activation(Settings& settings, const std::string& key);

/// The reverse. An activation that has no such name yields another's.
std::string plain_activation_name(const ModelConfig& config);
std::string gated_activation_name(const ModelConfig& config);

/// Sets the position encoding to `rotary` on the two halves of each head, with the frequencies of `rope_parameters`, or
/// of `rope_theta` and `rope_scaling` in older files. `share` is the share of each head's features that is rotated,
/// unless rope_parameters has one. config.heads, head_size and d_model are set. Throws Error on a kind of scaling that
/// Plumb does not have.
void read_rotary(Settings& settings, ModelConfig& config, double theta, double share = 1);

/// The reverse: rope_theta, rope_scaling if frequencies are scaled, and partial_rotary_factor if not all features are
/// rotated, which versions 4 and 5 of `transformers` both read.
void write_rotary(const ModelConfig& config, Json& keys);

/// The options of config.positions = "rotary", and which share of each head's features is rotated.
RotaryOptions rotary_options_of(const ModelConfig& config);
double rotated_share(const ModelConfig& config);

/// Features per head.
int64_t head_size_of(const ModelConfig& config);

/// The number of heads that keys and values have.
int64_t key_value_heads_of(const ModelConfig& config);

/// Takes PREFIX.weight, (shape), and, if there is to be one, PREFIX.bias, (shape[0]), for the Plumb parameters
/// OURS.weight and OURS.bias.
void take_pair(Weights& weights, const std::string& theirs, const std::string& ours, const std::vector<int64_t>& shape,
               bool bias, NamedTensors& result);

/// Takes the matrices of query, key and value, and their biases if there are to be any, as in_proj_weight and
/// in_proj_bias of `ours`. `theirs` are their three names.
void take_stacked(Weights& weights, const std::vector<std::string>& theirs, const std::string& ours,
                  const ModelConfig& config, bool bias, NamedTensors& result);

/// One of `tensors`, which has been taken. Throws Error if it has not.
const Tensor& tensor_named(const std::string& name, const NamedTensors& tensors);

/// Takes the output matrix, unless it is the embedding, which has been taken; then a copy of that is ignored, and
/// throws Error if it differs. Its name is without prefix.
void take_output(Weights& weights, const std::string& theirs, const ModelConfig& config, NamedTensors& result);

}  // namespace plumb
