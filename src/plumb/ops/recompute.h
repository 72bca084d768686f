// A part of a computation that keeps its inputs for the backward pass instead of everything in between.
#pragma once

#include <functional>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// A function of tensors, and of leaves that it reads by itself, such as parameters.
using Part = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A part in its two passes, which have to compute the same.
struct RecomputedPart {
  Part first;
  Part again;                     // what it refers to must outlive the graph
  std::function<void()> after{};  // called when the backward pass has used the result of `again`; may be empty
};

/// first(inputs), whose graph is dropped: the backward pass calls again(inputs) and differentiates that (Chen et al.
/// 2016, "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174). Which leaves the part reads is found from
/// the graph of `first`. Bit for bit the gradients of the part itself, if it returns those of its inputs that others
/// read after it: contributions to their gradients are then added in the same order. The gradients cannot be
/// differentiated again, which throws Error. Inputs must be defined.
std::vector<Tensor> recomputed(const std::vector<Tensor>& inputs, RecomputedPart part);

}  // namespace plumb::ops
