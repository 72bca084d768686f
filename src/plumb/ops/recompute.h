// Activation checkpointing: a part of a computation keeps its inputs for the backward pass, not what it computes from
// them.
#pragma once

#include <functional>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// A function of tensors, and of leaves that it reads by itself, such as parameters.
using Part = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A part as the forward pass computes it, and as the backward pass computes it again. Both must give the same results.
struct RecomputedPart {
  Part forward;
  Part replay;                    // what it refers to must outlive the graph
  std::function<void()> after{};  // called when the backward pass has differentiated the replay; may be empty
};

/// forward(inputs), without its graph. The backward pass calls replay(inputs) and differentiates that (Chen et al.
/// 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174). The leaves that get gradients are those in
/// the graph of `forward`. Inputs must be defined. Second derivatives throw Error.
///
/// The gradients equal those without recomputation bit for bit on one condition: if an input is also read after the
/// part, the part has to return it, and the later readers have to read what it returned. Autograd then adds the
/// contributions to the input's gradient in the same order.
std::vector<Tensor> recomputed(const std::vector<Tensor>& inputs, RecomputedPart part);

}  // namespace plumb::ops
