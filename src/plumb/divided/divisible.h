// Which models can be divided among processes that compute every layer together (Model::divide).
#pragma once

#include <cstdint>
#include <string>

#include "plumb/model/config.h"

namespace plumb {

/// The positive multiple of `of` that is closest to a positive size; the larger one of two.
int64_t nearest_multiple(int64_t size, int64_t of);

/// Throws Error unless Model::divide works for this model and the number of processes that `option` says. If only a
/// size does not fit, the hint names the nearest that does, and the nearest number of processes. They have to divide
/// model.heads, model.kv_heads and model.feed_forward; attention has to be softmax, with positions whose parameters
/// belong to single heads or that have none; and there must be no adapters, no matrices of unit vectors, and no norm
/// over the batch within attention.
void require_divisible(const ModelConfig& config, int64_t processes,
                       const std::string& option = "train.tensor_parallel");

}  // namespace plumb
