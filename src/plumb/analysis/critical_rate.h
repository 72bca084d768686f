// The critical learning rate of a step, above which the step raises the loss, and the critical sharpness 2/η_c (arXiv
// 2601.16979).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plumb/analysis/loss_function.h"
#include "plumb/analysis/rate_search.h"

namespace plumb {

struct CriticalRateOptions {
  double start = 1e-3;      // the first learning rate tried
  double tolerance = 0.05;  // the bracket's ends may differ by this fraction
  int64_t passes = 30;      // at most, of the loss over all batches
  double label_smoothing = 0;
  LossFunction loss = model_loss;
  std::vector<bool> frozen{};  // parameters that Model::constrain leaves as they are; empty: none
  Group group{};               // processes that share the batches; all get the result
};

/// L(w), the mean loss over all target tokens of the batches, without a graph or dropout. Throws Error if there are no
/// target tokens.
double loss_of_batches(Model& model, const std::vector<Batch>& batches, const CriticalRateOptions& options = {});

/// `gradient` and `update`: (parameters). The search assumes that the loss falls from 0 to its minimum along the update
/// and rises from there; a loss that is not finite counts as higher. Forward passes only, without dropout. Empty if the
/// update is not a descent direction, or if the bracket is not found within the passes. The parameters are unchanged
/// afterward.
std::optional<CriticalRate> critical_learning_rate(Model& model, const std::vector<Batch>& batches,
                                                   const Tensor& gradient, const Tensor& update,
                                                   const CriticalRateOptions& options = {});

}  // namespace plumb
