// A power law with a limit, fitted to losses by size: of models, or of the compute that training takes.
#pragma once

#include <vector>

namespace plumb {

/// L(x) = limit + (scale/x)^exponent: Henighan et al. 2020, arXiv 2010.14701, equation 1.1. Models that are trained on
/// equally many tokens follow it by Hoffmann et al. 2022, arXiv 2203.15556, equation 2, L = E + A/N^α + B/D^β: what the
/// tokens D leave, E + B/D^β, is the same for all of them, and the limit. A law without a limit (Kaplan et al. 2020,
/// arXiv 2001.08361, equation 1.1) describes models that the amount of text does not hold back; fitted to equal tokens,
/// it expects too much of larger models.
struct PowerLaw {
  static constexpr double kSmallestExponent = 0.01;
  static constexpr double kLargestExponent = 5;

  double limit = 0;       // L_inf, which no size falls below; in the unit of the losses
  double scale = 0;       // N_c, in the unit of the sizes; 0 if the losses do not fall
  double exponent = 0;    // α; NaN if the losses do not fall
  double residual = 0;    // root mean square of what the law leaves of the losses
  bool at_bound = false;  // whether the exponent is the smallest or the largest there is, so that it is no estimate

  /// L(x), in the unit of the losses.
  [[nodiscard]] double at(double size) const;
};

/// The law with limit ≥ 0 and 0.01 ≤ exponent ≤ 5 that has the least squares; where none is better than a constant, the
/// mean of the losses as the limit. NaN throughout if a loss is not finite, as of a run that diverged. Throws Error
/// unless there are as many losses as sizes, and three different positive sizes.
PowerLaw fit_power_law(const std::vector<double>& sizes, const std::vector<double>& losses);

}  // namespace plumb
