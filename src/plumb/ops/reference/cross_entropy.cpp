#include <algorithm>

#include "plumb/ops/index.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale) {
  if (std::count(weights.begin(), weights.end(), 0.0) > 0) {  // rows to ignore, even if their logits are NaN
    std::vector<int64_t> rows, kept_labels;
    std::vector<double> kept_weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      rows.push_back(static_cast<int64_t>(i));
      kept_labels.push_back(labels[i]);
      kept_weights.push_back(weights[i]);
    }
    const Tensor kept = logits.index_select(0, index_beside(logits, rows));
    return reference::cross_entropy(kept, kept_labels, kept_weights, smoothing, scale);
  }
  const Tensor log_p = at::log_softmax(logits, 1);
  Tensor nll = -log_p.gather(1, index_beside(logits, labels).unsqueeze(1)).squeeze(1);
  // Without smoothing, the mean must not count: it is infinite if any logit is −∞, and 0·∞ is NaN.
  Tensor loss = smoothing == 0 ? nll : (1 - smoothing) * nll - smoothing * log_p.mean(1);
  if (!weights.empty()) {
    const Tensor factors = values_beside(logits, weights);
    nll = factors * nll;
    loss = factors * loss;
  }
  return {scale * loss.sum(), DeviceScalar(nll.detach().sum(at::kDouble))};
}

CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale) {
  const Tensor logits = rounds_to_bfloat16(hidden) ? rounded_linear(hidden, weight, bias, Activation::none)
                                                   : reference::linear(hidden, weight, bias, Activation::none);
  return cross_entropy(logits, labels, weights, smoothing, scale);
}

}  // namespace plumb::ops::reference
