// Families of models that can be imported and exported: what their config.json and the names of their tensors mean.
// Each family is one file in interop/families, which registers it under its model_type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/interop/settings.h"
#include "plumb/interop/weights.h"
#include "plumb/model/config.h"
#include "plumb/nn/position/rotary.h"

namespace plumb {

struct Family {
  std::vector<std::string> classes;  // supported classes of `transformers`: "GPT2LMHeadModel"
  /// Plumb's configuration of the model. Reads every key that it knows.
  ModelConfig (*configuration)(Settings& settings);
  /// The tensors under Plumb's names, taken from those of the folder. Every element goes to at least one place (unless
  /// it is unused), multiplied by a constant or unchanged, and no two to the same place; the export inverts this map.
  NamedTensors (*tensors)(const ModelConfig& config, Weights& weights);
  /// The reverse of `configuration`: the keys of config.json, except model_type and, if the class is the first of
  /// `classes`, architectures. It need not detect what the family cannot express: the export reads the keys back and
  /// compares. Null: import only.
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

/// Throws Error, naming what is not supported: the architecture, a key that may change what the model computes, or a
/// value.
DescribedModel described_by(Settings settings);

// Shared by the families.

/// A decoder with unscaled embeddings, and defaults for everything else.
ModelConfig imported_decoder();

/// vocab_size, hidden_size, intermediate_size, num_hidden_layers and num_attention_heads of a decoder, and the reverse.
void read_decoder_sizes(Settings& settings, ModelConfig& config);
Json decoder_sizes(const ModelConfig& config);

/// The number of tokens that a model says it reads at once: n_positions, max_position_embeddings or n_ctx, the first
/// that is present, in the harness's order; nullopt without any of them. Throws Error if one is less than 1.
std::optional<int64_t> positions_of(Settings& settings);

/// The names of a classifier's labels by index: id2label, or LABEL_0, LABEL_1, … without it, as many as num_labels says
/// or 2, the defaults of `transformers`. Throws Error unless its keys are 0, 1, 2, …, its names are distinct, and
/// num_labels, if given, is their number.
std::vector<std::string> labels_of(Settings& settings);

/// Writes id2label and label2id, the names of a classifier's labels.
void name_labels(const std::vector<std::string>& labels, Json& settings);

/// Ignores keys that any config.json may have and that do not change what a model computes: special tokens, names,
/// element types, dropout of parts, settings for generation. Throws Error if pruned_heads, repetition_penalty or
/// tie_encoder_decoder has a value that would change it.
void ignore_common_keys(Settings& settings);

/// model.activation of a plain and of a gated feed-forward sub-layer, from the activation's name in `key`. Throws Error
/// if Plumb has no such activation.
std::string plain_activation(Settings& settings, const std::string& key);
std::string gated_activation(Settings& settings, const std::string& key);

/// The reverse. An activation without such a name yields the name of another one.
std::string plain_activation_name(const ModelConfig& config);
std::string gated_activation_name(const ModelConfig& config);

/// Sets the position encoding to `rotary` on the two halves of each head, with the frequencies of `rope_parameters`, or
/// of `rope_theta` and `rope_scaling` in older files. `theta` and `share`, the fraction of each head's features that is
/// rotated, are defaults. Without `share`, the family's models rotate all features: `transformers` ignores their
/// partial_rotary_factor (version 5) or fails (version 4). config.heads, head_size and d_model must be set. Throws
/// Error on a kind of scaling that Plumb does not have, if the number of rotated features is odd or 0, and if only some
/// are to be rotated in a family that rotates all.
void read_rotary(Settings& settings, ModelConfig& config, double theta, std::optional<double> share = {});

/// The reverse: rope_theta, and rope_scaling if frequencies are scaled, which versions 4 and 5 of `transformers` both
/// read. A family that rotates a share of the features writes that itself.
void write_rotary(const ModelConfig& config, Json& keys);

/// The options of config.positions = "rotary", and the fraction of each head's features that is rotated.
RotaryOptions rotary_options_of(const ModelConfig& config);
double rotated_share(const ModelConfig& config);

/// Takes THEIRS.weight, (shape), and, if `bias`, THEIRS.bias, (shape[0]), as OURS.weight and OURS.bias.
void take_pair(Weights& weights, const std::string& theirs, const std::string& ours, const std::vector<int64_t>& shape,
               bool bias, NamedTensors& result);

/// Takes the query, key and value matrices with the three names `theirs` and, if `bias`, their biases, stacked as
/// OURS.in_proj_weight and OURS.in_proj_bias.
void take_stacked(Weights& weights, const std::vector<std::string>& theirs, const std::string& ours,
                  const ModelConfig& config, bool bias, NamedTensors& result);

/// The tensor of that name in `tensors`. Throws Error if there is none.
const Tensor& tensor_named(const std::string& name, const NamedTensors& tensors);

/// Takes the output matrix, whose name has no prefix. If it is tied to the target embedding, which must be in `result`,
/// ignores a copy of that instead, and throws Error if the copy differs.
void take_output(Weights& weights, const std::string& theirs, const ModelConfig& config, NamedTensors& result);

}  // namespace plumb
