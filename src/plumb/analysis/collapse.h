// How much a representation still changes with depth: representation collapse (Liu et al. 2020, arXiv 2004.08249; Xie
// et al. 2023, arXiv 2304.14802, section 3).
#pragma once

#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// The representation x_k after sub-layer k of a stack, with each token's vector normalized to mean 0 and variance 1
/// over its features, as by a norm: the stream, or the tensor shown at Point::representation, such as ResiDual's x +
/// norm(r). x_0 is the stack's input.
struct CollapsePoint {
  int64_t depth = 0;          // k, from 1
  LayerId id;                 // the sub-layer
  double mean_square = 0;     // of an element before normalization
  double change = 0;          // mean |x_k − x_{k−1}| over tokens and features
  double similarity = 0;      // mean over tokens of the cosine of x_k and x_{k−1}
  double effective_rank = 0;  // of the x_k of all tokens; see below
};

/// By stack; empty if the model does not have that stack.
struct CollapseProfile {
  std::vector<CollapsePoint> encoder;
  std::vector<CollapsePoint> decoder;
};

/// exp(H(p)), where p are the singular values of the centered rows divided by their sum, and H is the entropy (Roy &
/// Vetterli 2007). rows: (tokens, width). 1 for rows on a line, at most min(tokens − 1, width); 0 if all rows are
/// equal.
double effective_rank(const Tensor& rows);

/// Runs forward passes without dropout and without a graph. Keeps the representations of all tokens of all batches, for
/// the effective rank.
CollapseProfile measure_collapse(Model& model, const std::vector<Batch>& batches);

/// Pre-LN at initialization (Xie et al. 2023): x_k is the normalized sum of k + 1 independent terms of equal size, so
/// that  E|(x_k − x_{k−1})_i| = √(2/π)·√(2 − 2√(k/(k+1))),  O(1/√k).
double predicted_pre_ln_change(int64_t depth);

}  // namespace plumb
