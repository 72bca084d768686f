// The gradient of the loss by parameter, averaged over tokens and over mini-batches.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/loss_function.h"
#include "plumb/nn/context.h"
#include "plumb/nn/layer_division.h"

namespace plumb {

using NormByParameter = std::vector<std::pair<std::string, double>>;  // in the order of the model's parameters

/// No dropout. N: total weight of the target tokens (their number if all weights are 1); B: number of batches; n_b:
/// weight of batch b.
struct GradientProfile {
  double loss = 0;                  // 1/N Σ −log p(token)
  double loss_label_smoothing = 0;  // the same with label smoothing ε = 0.1
  /// Frobenius norms of the gradient of the mean loss over all tokens, Σ_b n_b/N · g_b, where g_b is the gradient of
  /// batch b's mean loss. They do not depend on how the tokens are divided into batches, unless the model has norms
  /// over a batch (batchnorm, powernorm), whose statistics are those of each batch.
  NormByParameter norm_by_parameter;
  double total = 0;  // for all parameters together
  /// Frobenius norms of the element-wise mean gradient over mini-batches, 1/B Σ_b g_b (Xiong et al. 2020, arXiv
  /// 2002.04745, Figure 3). Equal to the above if all batches have the same number of tokens.
  NormByParameter batch_mean_norm_by_parameter;

  /// Throw Error, with the closest name as a hint, if the model has no such parameter.
  [[nodiscard]] double norm(const std::string& parameter) const;
  [[nodiscard]] double batch_mean_norm(const std::string& parameter) const;
};

/// The gradient is that of the loss with this label smoothing; the two losses do not depend on it. `observer`, if
/// given, sees the activations of the same forward passes. Throws Error if there are no target tokens.
///
/// The processes of a group share the batches, and all get the profile; an observer sees only its own process's
/// activations. They must have the same parameters and pass the same batches. `division`: how the model is divided
/// among processes that compute its layers together, which all get the profile of the whole; null: it is not.
GradientProfile measure_gradients(Model& model, const std::vector<Batch>& batches, double label_smoothing = 0,
                                  const Observer& observer = {}, const LossFunction& loss = model_loss,
                                  const Group& group = {}, const LayerDivision* division = nullptr);

/// "decoder.layers.3.linear2.weight": the name of a layer's feed-forward matrix W1 or W2.
std::string feed_forward_matrix(const LayerId& layer, int matrix);

}  // namespace plumb
