// The arithmetic that a model needs for a batch, counted from its shapes.
#pragma once

#include "plumb/base/batch.h"
#include "plumb/model/model.h"

namespace plumb {

/// Floating-point operations of a forward pass, as model FLOPs utilization counts them (Chowdhery et al. 2022, arXiv
/// 2204.02311, appendix B): 2 per element of a weight matrix and token that it is applied to, 2·d_model·classes per
/// label, and 4·heads·head_size per pair of query and key that softmax attention forms. Norms, embeddings, activation
/// functions and the recurrences of other attentions count nothing. Forward and backward pass together are three times
/// as many.
double forward_flops(const Model& model, const Batch& batch);

}  // namespace plumb
