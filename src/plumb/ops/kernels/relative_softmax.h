// The softmax of attention whose scores are sums of two products, and its gradient: one query.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// scores_j = exp(z_j − log Σ exp(z)), z_j = scale·(scores_j + further_j), for j < n, n ≥ 1. Returns log Σ exp(z).
float relative_softmax(float* scores, const float* further, int64_t n, float scale);

/// The probabilities anew, with `log_sum` as relative_softmax has returned it, in `scores`; and, in `gradient`, which
/// holds those of the probabilities, the gradients of the sums scores_j + further_j:
///   scale·p_j·(gradient_j − mean), mean = Σ p_j·gradient_j.
void relative_softmax_backward(float* scores, const float* further, float* gradient, int64_t n, float scale,
                               float log_sum, float mean);

}  // namespace plumb::kernels
