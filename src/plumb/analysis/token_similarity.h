// How similar the representations of different tokens are: they become equal when the rank collapses (Dong et al. 2021,
// arXiv 2103.03404; Noci et al. 2022, arXiv 2206.03126).
#pragma once

#include <map>

#include "plumb/model/model.h"

namespace plumb {

/// The sum of the cosines between all ordered pairs of different tokens of the same sequence, and the number of these
/// pairs. x: (tokens, width), the sequences of `layout`.
double sum_of_cosines(const Tensor& x, const Ragged& layout);
double pairs_of_tokens(const Ragged& layout);

/// The mean cosine between two representations over all pairs of different tokens of the same sequence. Collects what
/// is read in forward passes, after the norms of the residual scheme, so that it means the same in all schemes: what
/// the first sub-layer of each layer reads, and the result of each stack, which the output layer or cross-attention
/// reads.
class TokenSimilarity {
 public:
  /// x: (tokens, width), the sequences of `layout`; sums in float64. A sequence of one token has no pairs.
  void see(const LayerId& layer, const Tensor& x, const Ragged& layout);

  /// Runs a forward pass of the batch without a graph. Sets, and then clears, the activation observer of `context`.
  void see(Model& model, const Batch& batch, ForwardContext& context);

  /// By layer; a stack's result under the stack's id. NaN if there was no pair.
  [[nodiscard]] std::map<LayerId, double> means() const;

 private:
  struct Sums {
    double cosines = 0;
    double pairs = 0;
  };
  std::map<LayerId, Sums> sums_;
};

}  // namespace plumb
