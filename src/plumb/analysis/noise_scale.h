// How much the gradient of a mini-batch varies: McCandlish et al. 2018, arXiv 1812.06162.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/analysis/loss_function.h"

namespace plumb {

/// From the gradients g_k of K mini-batches of m examples each, drawn independently: g_k has mean G, the gradient of
/// the whole loss, and covariance Σ/m, where Σ is that of single examples.
struct NoiseScale {
  double mean_square_norm = 0;     // 1/K Σ‖g_k‖², an estimate of E‖g‖² = ‖G‖² + tr Σ/m
  double square_norm_of_mean = 0;  // ‖1/K Σ g_k‖², an estimate of ‖G‖² + tr Σ/(mK)
  double square_gradient = 0;      // ‖G‖², without bias; can be negative if the noise is large
  double trace = 0;                // tr Σ, without bias

  /// tr Σ/‖G‖², the number of examples in a batch at which noise and signal are of equal size ("B_simple", the paper's
  /// equation 2.9); NaN if the estimate of ‖G‖² is not positive.
  [[nodiscard]] double examples() const;
};

/// With B_small = m and B_big = mK (the paper's appendix A.1):
///   ‖G‖² = (B_big·‖G_big‖² − B_small·‖G_small‖²)/(B_big − B_small),
///   tr Σ = (‖G_small‖² − ‖G_big‖²)/(1/B_small − 1/B_big).
/// Throws Error on fewer than two batches.
NoiseScale noise_scale(double mean_square_norm, double square_norm_of_mean, int64_t batches, int64_t examples);

/// The noise of the gradient of the mean loss per label, over batches of `examples` examples each: g_k is K/W times the
/// gradient of the loss summed over the labels of batch k, W the weight of all labels of all batches, so that the mean
/// of the g_k is the gradient of the mean over all labels. Without dropout. Throws Error on fewer than two batches, and
/// if no batch has labels.
NoiseScale measure_noise_scale(Model& model, const std::vector<Batch>& batches, int64_t examples,
                               double label_smoothing = 0, const LossFunction& loss = model_loss);

}  // namespace plumb
