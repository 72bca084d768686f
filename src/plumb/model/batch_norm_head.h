// The classifier's head of ULMFiT (Howard & Ruder 2018, arXiv 1801.06146, section 3.3): two blocks of batch norm,
// dropout and a linear layer, with ReLU between them. The second linear layer is the model's output layer.
#pragma once

#include <memory>

#include "plumb/base/ragged.h"
#include "plumb/nn/context.h"
#include "plumb/nn/linear.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// Parameters: pooler.norm1, pooler.weight, pooler.bias and pooler.norm2.
class BatchNormHead {
 public:
  struct Shape {
    int64_t width = 0;          // of the pooled vectors
    int64_t size = 0;           // output of the first linear layer
    double pooled_dropout = 0;  // in the first block
    double dropout = 0;         // in the second
    double eps = 1e-5;          // of the norms
  };
  BatchNormHead(Parameters& parameters, const Shape& shape);

  /// The input of the output layer: (sequences, width) → (sequences, size),
  ///   D₂(BN₂(ReLU(W·D₁(BN₁(pooled)) + b))).
  /// Dropout is active only in training steps; its masks depend on where the sequences of `layout` begin in the step's
  /// batch, not on how that batch is split. The norms' statistics are over the sequences of this pass, in all
  /// processes.
  [[nodiscard]] Tensor operator()(const Tensor& pooled, const Ragged& layout, ForwardContext& context) const;

 private:
  double pooled_dropout_, dropout_;
  std::unique_ptr<Norm> first_, second_;
  Linear linear_;  // W and b: (size, width)
};

}  // namespace plumb
