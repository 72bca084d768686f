// Models that differ in what processes divide when they compute one together.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "plumb/run/config.h"

namespace plumb::test {

struct Architecture {
  std::string name;
  std::function<void(RunConfig&)> set;
};
inline void PrintTo(const Architecture& architecture, std::ostream* out) { *out << architecture.name; }

/// Matrices without biases, whose gradients are never 0 but for rounding, so that Adam can be compared too.
inline void without_biases(RunConfig& run) {
  run.model.kind = "decoder";
  run.model.norm = "rmsnorm";
  run.model.attention_bias = "none";
  run.model.feed_forward_bias = false;
  run.train.optimizer = "adamw";
  run.train.learning_rate = 1e-3;
  run.train.weight_decay = 0.1;
}

/// An encoder-decoder with one table of embeddings.
inline const Architecture kPostLn = {"PostLn", [](RunConfig& run) {
                                       run.model.residual = "post-ln";
                                       run.model.share_embeddings = "all";
                                     }};

/// Gated, with rotary positions and grouped keys.
inline const Architecture kLlama = {"Llama", [](RunConfig& run) {
                                      without_biases(run);
                                      run.model.activation = "swiglu";
                                      run.model.positions = "rotary";
                                      run.model.kv_heads = 2;
                                    }};

/// With relative positions, and heads that are not d_model / heads wide.
inline const Architecture kGopher = {"Gopher", [](RunConfig& run) {
                                       without_biases(run);
                                       run.model.activation = "gelu";
                                       run.model.positions = "transformer-xl";
                                       run.model.head_size = 5;
                                     }};

/// Whose later layers read the values of the first.
inline const Architecture kGated = {"GatedWithNormsOfHeads", [](RunConfig& run) {
                                      without_biases(run);
                                      run.model.attention_gate = true;
                                      run.model.qk_norm = "rmsnorm";
                                      run.model.value_residual = true;
                                      run.model.parallel = true;
                                      run.model.activation = "geglu";
                                    }};

}  // namespace plumb::test
