// A power law with a limit, fitted to losses by model size or training compute.
#pragma once

#include <vector>

namespace plumb {

/// L(x) = limit + (scale/x)^exponent: Henighan et al. 2020, arXiv 2010.14701, equation 1.1. Models trained on the same
/// number of tokens D follow it by Hoffmann et al. 2022, arXiv 2203.15556, equation 2, L = E + A/N^α + B/D^β, with the
/// limit E + B/D^β. A law without a limit (Kaplan et al. 2020, arXiv 2001.08361, equation 1.1) describes models that
/// are not limited by data; fitted at equal tokens, it is too optimistic about larger models.
struct PowerLaw {
  static constexpr double kSmallestExponent = 0.01;
  static constexpr double kLargestExponent = 5;

  double limit = 0;       // L_inf, the loss at infinite size; in the unit of the losses
  double scale = 0;       // N_c, in the unit of the sizes; 0 if the losses do not fall
  double exponent = 0;    // α; NaN if the losses do not fall
  double residual = 0;    // root mean square of the residuals
  bool at_bound = false;  // whether the exponent is at an end of its range, and therefore no estimate

  /// L(x), in the unit of the losses.
  [[nodiscard]] double at(double size) const;
};

/// The least-squares law with limit ≥ 0 and 0.01 ≤ exponent ≤ 5; if none is better than a constant, the mean of the
/// losses as the limit. All numbers are NaN if a loss is not finite, as after divergence. Throws Error unless there are
/// as many losses as sizes, and at least three different sizes, all positive and finite.
PowerLaw fit_power_law(const std::vector<double>& sizes, const std::vector<double>& losses);

}  // namespace plumb
