#include "plumb/ops/cross_entropy.h"

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {

void require_labels(const std::vector<int64_t>& labels, const std::vector<double>& weights, int64_t tokens,
                    int64_t vocabulary) {
  if (static_cast<int64_t>(labels.size()) != tokens)
    throw Error("the number of labels must equal the number of tokens");
  if (!weights.empty() && weights.size() != labels.size())
    throw Error("the number of weights must equal the number of labels");
  for (const int64_t label : labels) {
    if (label < 0 || label >= vocabulary)
      throw Error("a label is outside the vocabulary", "was the data prepared for this model?");
  }
}

int64_t chunk_rows(int64_t vocabulary) {
  return std::clamp<int64_t>((int64_t{1} << 24) / std::max<int64_t>(vocabulary, 1), 64, 512);
}

CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale) {
  require_labels(labels, weights, logits.size(0), logits.size(1));
  static constexpr Operation kCrossEntropy("cross-entropy", PLUMB_FUSED(cross_entropy), &reference::cross_entropy);
  return kCrossEntropy(path_of(logits), logits, labels, weights, smoothing, scale);
}

CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale) {
  require_labels(labels, weights, hidden.size(0), weight.size(0));
  require_one_device("linear cross-entropy", hidden, weight, bias);
  static constexpr Operation kLinearCrossEntropy("output and cross-entropy", PLUMB_FUSED(linear_cross_entropy),
                                                 &reference::linear_cross_entropy);
  return kLinearCrossEntropy(path_of(hidden), hidden, weight, bias, labels, weights, smoothing, scale);
}

}  // namespace plumb::ops
