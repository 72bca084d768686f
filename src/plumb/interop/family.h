// Families of models that can be imported: how their config.json and the names of their tensors are to be understood.
// Each family is one file in interop/families, which registers it under its model_type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/interop/settings.h"
#include "plumb/interop/weights.h"
#include "plumb/model/config.h"

namespace plumb {

struct Family {
  std::vector<std::string> classes;  // those of `transformers` that are known: "GPT2LMHeadModel"
  /// The configuration of the same model. Asks for every key that it knows.
  ModelConfig (*configuration)(Settings& settings);
  /// The tensors under Plumb's names, taken from those of the folder.
  NamedTensors (*tensors)(const ModelConfig& config, Weights& weights);
};

/// By model_type.
Registry<Family>& families();

// What families have in common.

/// A decoder with embeddings as they are, and nothing else decided.
ModelConfig imported_decoder();

/// Ignores the keys that any config.json may have and that do not change what a model computes: special tokens, names,
/// element types, dropout of parts, settings of generation.
void ignore_common_keys(Settings& settings);

/// model.activation for two matrices and for a gated unit, from the activation's name in `key`. Throws Error if Plumb
/// has no such activation.
std::string plain_activation(Settings& settings, const std::string& key);
std::string gated_activation(Settings& settings, const std::string& key);

/// Sets the position encoding to `rotary` on the two halves of each head, with the frequencies of `rope_parameters`, or
/// of `rope_theta` and `rope_scaling` in older files. `share` is the share of each head's features that is rotated,
/// unless rope_parameters has one. config.heads, head_size and d_model are set. Throws Error on a kind of scaling that
/// Plumb does not have.
void read_rotary(Settings& settings, ModelConfig& config, double theta, double share = 1);

/// Features per head.
int64_t head_size_of(const ModelConfig& config);

/// Takes PREFIX.weight, (shape), and, if there is to be one, PREFIX.bias, (shape[0]), for the Plumb parameters
/// OURS.weight and OURS.bias.
void take_pair(Weights& weights, const std::string& theirs, const std::string& ours, const std::vector<int64_t>& shape,
               bool bias, NamedTensors& result);

/// Takes the matrices of query, key and value, and their biases if there are to be any, as in_proj_weight and
/// in_proj_bias of `ours`. `theirs` are their three names.
void take_stacked(Weights& weights, const std::vector<std::string>& theirs, const std::string& ours,
                  const ModelConfig& config, bool bias, NamedTensors& result);

/// Takes the output matrix, unless it is the embedding; a copy of the embedding is ignored. Its name is without prefix.
void take_output(Weights& weights, const std::string& theirs, const ModelConfig& config, NamedTensors& result);

}  // namespace plumb
