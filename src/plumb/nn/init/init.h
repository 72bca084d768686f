// Initialization of a model's parameters: the registry of kinds and their common parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/base/random.h"
#include "plumb/base/registry.h"
#include "plumb/nn/layer_id.h"
#include "plumb/nn/model_depth.h"
#include "plumb/nn/parameters.h"

namespace plumb {

struct Initialization {
  /// Fills one parameter whose role is `weight`, one of the four roles after it, or `readout`.
  std::function<void(const Parameter&, const ModelDepth&, Random&)> fill_weight;
  /// Multiplies the standard deviation 1/√d of an embedding; empty: 1.
  std::function<double(const Parameter&, const ModelDepth&)> embedding_factor = {};
};
Registry<Initialization>& initializations();

/// [model.initialization_scale]: factors of what the kind draws, in all layers. All matrices of attention and of the
/// feed-forward sub-layers have one; a sub-layer of ReLU adds feed_forward² times as much.
struct InitializationScale {
  double queries_keys = 1, values = 1, outputs = 1, feed_forward = 1;

  bool operator==(const InitializationScale&) const = default;
};
void describe(Fields& field, InitializationScale& scale);

/// How a model's parameters are initialized.
struct InitializationChoice {
  std::string kind;
  std::string encoder = "same";  // the kind for the layers of the encoder, if it is another
  InitializationScale scale = {};
};

/// Initializes each parameter from a separate random stream, named after it: weight matrices as the kind specifies;
/// embeddings (including an output matrix over a vocabulary) from N(0, 1/d) unless the kind overrides it; positions
/// from N(0, 0.02²); adapters from N(0, Parameter::initial²); gains 1; biases and shifts 0; constants and buffers their
/// initial values, or for some constants, draws from the distribution that they were declared with.
void initialize(const Parameters& parameters, const InitializationChoice& choice, const ModelDepth& depth,
                uint64_t seed);

/// What that does with a parameter; any thread may call it.
using Initializer = std::function<void(const Parameter&)>;
Initializer initializer(const InitializationChoice& choice, const ModelDepth& depth, uint64_t seed);

/// Initializes a process's shards of parameters: one thread fills the full parameter, in the shape `full_sizes`, and
/// keeps its shard.
void initialize_shards(const Parameters& shards, const Initializer& fill,
                       const std::function<std::vector<int64_t>(size_t parameter)>& full_sizes,
                       const std::function<Tensor(size_t parameter, const Tensor& full)>& shard_of);

/// Calls fill(matrix, fan_in, fan_out) for each matrix of the parameter: the parameter itself, or the matrices stacked
/// in it, such as query, key and value, each with its own fan_out.
void for_each_matrix(const Parameter& parameter,
                     const std::function<void(const Tensor&, int64_t fan_in, int64_t fan_out)>& fill);

/// √(2/(fan_in + fan_out)): the standard deviation of Glorot & Bengio 2010.
double xavier_deviation(int64_t fan_in, int64_t fan_out);

/// Xavier normal, with the matrices that a signal passes through (value, attention output, both feed-forward matrices)
/// multiplied by `scale`; queries and keys, which only determine weights, and all other matrices are unchanged.
void fill_scaled_xavier(const Parameter& parameter, double scale, Random& random);

/// Whether a parameter belongs to this stack, or to the decoder, according to its name.
bool in_stack(const Parameter& parameter, StackKind stack);
bool in_decoder(const Parameter& parameter);

/// Fills a contiguous tensor with N(0, deviation²) or U(−bound, bound).
void fill_normal(const Tensor& tensor, double deviation, Random& random);
void fill_uniform(const Tensor& tensor, double bound, Random& random);

}  // namespace plumb
