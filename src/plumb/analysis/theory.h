// Predictions of "On Layer Normalization in the Transformer Architecture" (Xiong et al. 2020, arXiv 2002.04745) for a
// model at initialization. Setting: one head, all matrices (d, d) and N(0, 1/d), W^Q = W^K = 0, biases 0, inputs N(0,
// I). Layers l count from 1 to L.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace plumb::theory {

/// The placement of the norm in a residual scheme, as the theory distinguishes it.
enum class Placement { post_ln, pre_ln, other };
Placement placement(const std::string& residual);

/// E‖FFN(x)‖²/‖x‖² for feed-forward width f and Xavier matrices: 2df/(d + f)²; 1/2 at f = d. It uses Lemma 1 once:
/// E‖ReLU(X)‖² = σ²d/2 for X ~ N(0, σ²I_d).
double feed_forward_gain(int64_t d, int64_t feed_forward);

/// Lemma 2, Post-LN: E‖x^{post,5}‖² = 3d/2, the input of a layer's last norm, in every layer. The second form applies
/// to any feed-forward width: d·(1 + feed_forward_gain).
double lemma2_post_ln(int64_t d);
double lemma2_post_ln(int64_t d, int64_t feed_forward);

/// Lemma 2, Pre-LN: (1 + l/2)d ≤ E‖x_l‖² ≤ (1 + 3l/2)d, the stream after layer l; l = 0 is the input.
std::pair<double, double> lemma2_pre_ln(int64_t layer, int64_t d);
/// The same for any feed-forward width, `attentions` attention sub-layers per layer (2 in a decoder, each of which adds
/// between 0 and d), and any E‖x_0‖² = input.
std::pair<double, double> lemma2_pre_ln(int64_t layer, int64_t d, int64_t feed_forward, int64_t attentions,
                                        double input);

/// Theorem 1: ‖∂L/∂W^{2,L}‖_F = O(bound) for the second matrix of the last layer's feed-forward sub-layer, where L is
/// the loss of one token; a mean over tokens has a smaller gradient. The bounds are d√(ln d) and d√(ln d / L), without
/// the constant.
double theorem1_post_ln(int64_t d);
double theorem1_pre_ln(int64_t d, int64_t layers);

/// The probability with which Theorem 1 holds, 0.99 − δ − ε/(0.9 + ε), for (ε, δ)-bounded ‖x‖².
double theorem1_probability(double epsilon, double delta);

/// Appendix: the gradient of Post-LN layer l has the factor (2/3)^{(L−l)/2}; its logarithm grows by ½·ln(3/2) per
/// layer.
double log_slope();

}  // namespace plumb::theory
