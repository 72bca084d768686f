// Initialization of a model's parameters: the registry of kinds and what they share.
#pragma once

#include <functional>
#include <string>

#include "plumb/base/random.h"
#include "plumb/base/registry.h"
#include "plumb/nn/depth.h"
#include "plumb/nn/parameters.h"

namespace plumb {

struct Initialization {
  /// Fills the value of one weight matrix: a parameter whose role is `weight` or one of the four behind it.
  std::function<void(const Parameter&, const ModelDepth&, Random&)> fill_weight;
  /// Factor on the deviation 1/√d of an embedding; empty: 1.
  std::function<double(const Parameter&, const ModelDepth&)> embedding_factor = {};
};
Registry<Initialization>& initializations();

/// Initializes every parameter from a random stream of its own, named after it: weight matrices as the kind says;
/// embeddings (the output matrix among them) from N(0, 1/d) if it says nothing else; positions from N(0, 0.02²); gains
/// 1; biases and shifts 0; constants and buffers their initial value.
void initialize(const Parameters& parameters, const std::string& kind, const ModelDepth& depth, uint64_t seed);

/// Calls fill(matrix, fan_in, fan_out) for each matrix of the parameter: itself, or the query, key and value stacked
/// in it, which are matrices of their own for Xavier and others.
void for_each_matrix(const Parameter& parameter,
                     const std::function<void(const Tensor&, int64_t fan_in, int64_t fan_out)>& fill);

/// √(2/(fan_in + fan_out)): the standard deviation of Glorot & Bengio 2010.
double xavier_deviation(int64_t fan_in, int64_t fan_out);

/// Xavier normal, but the matrices through which a signal passes (value, attention's output, both of the feed-forward
/// sub-layer) times `scale`; queries and keys, which only weigh, as they are.
void fill_scaled_xavier(const Parameter& parameter, double scale, Random& random);

/// Whether a parameter belongs to the decoder.
bool in_decoder(const Parameter& parameter);

/// Fills a contiguous tensor with N(0, deviation²) or U(−bound, bound).
void fill_normal(const Tensor& tensor, double deviation, Random& random);
void fill_uniform(const Tensor& tensor, double bound, Random& random);

}  // namespace plumb
