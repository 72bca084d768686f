// Initialisation of a model's parameters: the registry of kinds and what they share.
#pragma once

#include <functional>
#include <string>

#include "plumb/base/random.h"
#include "plumb/base/registry.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// Fills the value of one parameter whose role is `weight`, `stacked_qkv` or `attention_output`.
using InitFactory = std::function<void(const Parameter&, Random&)>;
Registry<InitFactory>& initialisations();

/// Initialises every parameter from a random stream of its own, named after it: weight matrices by the scheme `kind`;
/// embeddings (the output matrix among them) from N(0, 1/d); positions from N(0, 0.02²); gains 1; biases and shifts 0.
void initialise(const Parameters& parameters, const std::string& kind, uint64_t seed);

/// Calls fill(matrix, fan_in, fan_out) for each matrix of the parameter: itself, or the three of a stacked query, key
/// and value, each (d, d), which Xavier et al. treat as matrices of their own.
void for_each_matrix(const Parameter& parameter,
                     const std::function<void(const Tensor&, int64_t fan_in, int64_t fan_out)>& fill);

/// Fills a contiguous tensor with N(0, deviation²) or U(−bound, bound).
void fill_normal(const Tensor& tensor, double deviation, Random& random);
void fill_uniform(const Tensor& tensor, double bound, Random& random);

}  // namespace plumb
