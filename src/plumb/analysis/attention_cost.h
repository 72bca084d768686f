// Time and memory of causal self-attention of a given kind and length.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/nn/attention/attention.h"

namespace plumb {

struct AttentionCost {
  double forward_seconds = 0;   // without a graph
  double gradient_seconds = 0;  // forward and backward
  int64_t held_bytes = 0;       // kept by the forward pass for the backward pass, excluding the input
};

/// Times one sequence of `length` random positions in float32, without projections: medians of `runs` runs after a
/// warm-up run (median_seconds in base/timing.h).
AttentionCost measure_attention_cost(const std::string& kind, const VariantOptions& options, int64_t d_model,
                                     int64_t heads, int64_t length, int64_t runs, uint64_t seed);

}  // namespace plumb
