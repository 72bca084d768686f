#include "plumb/analysis/theory.h"

#include <cmath>

namespace plumb::theory {

Placement placement(const std::string& residual) {
  if (residual == "post-ln" || residual == "/dan" || residual == "/an") return Placement::post_ln;
  if (residual == "pre-ln" || residual == "n/da" || residual == "n/a") return Placement::pre_ln;
  return Placement::other;
}

double feed_forward_gain(int64_t d, int64_t feed_forward) {
  // The hidden layer has f elements of variance 2‖x‖²/(d + f), halved by ReLU; the output has d elements of variance
  // 2/(d + f) times that.
  const auto width = static_cast<double>(d);
  const auto hidden = static_cast<double>(feed_forward);
  return 2 * width * hidden / std::pow(width + hidden, 2);
}

double lemma2_post_ln(int64_t d) { return lemma2_post_ln(d, d); }

double lemma2_post_ln(int64_t d, int64_t feed_forward) {
  return static_cast<double>(d) * (1 + feed_forward_gain(d, feed_forward));
}

std::pair<double, double> lemma2_pre_ln(int64_t layer, int64_t d) {
  return lemma2_pre_ln(layer, d, d, 1, static_cast<double>(d));
}

std::pair<double, double> lemma2_pre_ln(int64_t layer, int64_t d, int64_t feed_forward, int64_t attentions,
                                        double input) {
  const double layers_width = static_cast<double>(layer) * static_cast<double>(d);
  const double low = input + layers_width * feed_forward_gain(d, feed_forward);
  return {low, low + layers_width * static_cast<double>(attentions)};
}

double theorem1_post_ln(int64_t d) { return static_cast<double>(d) * std::sqrt(std::log(static_cast<double>(d))); }

double theorem1_pre_ln(int64_t d, int64_t layers) {
  return theorem1_post_ln(d) / std::sqrt(static_cast<double>(layers));
}

double theorem1_probability(double epsilon, double delta) { return 0.99 - delta - epsilon / (0.9 + epsilon); }

double log_slope() { return std::log(1.5) / 2; }

}  // namespace plumb::theory
