#include "in_words.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/report/answers.h"

namespace plumb::app {
namespace {

/// "grows 2.8-fold from the first layer to the last".
std::string growth(double per_layer, int64_t layers) {
  const double whole = std::pow(per_layer, static_cast<double>(layers - 1)), unknown = std::nan("");
  return change_in_words({whole, unknown, unknown, 1}) + " from the first layer to the last";
}

/// "×1.04 per layer, 0.94 to 1.15".
std::string factor(const TheoryReport::Slope& slope) {
  const Interval& found = slope.over_seeds;
  const std::string ends =
      std::isfinite(found.low) ? fmt::format(", {:.2f} to {:.2f}", std::exp(found.low), std::exp(found.high)) : "";
  return fmt::format("×{:.2f} per layer{}", std::exp(slope.fit.slope), ends);
}

/// "; Xiong et al. 2020 predict ×1.22, as measured".
std::string against_theory(const TheoryReport::Slope& slope) {
  if (!slope.predicted) return {};
  const Interval& found = slope.over_seeds;
  const bool holds = found.low <= *slope.predicted && *slope.predicted <= found.high;
  return fmt::format("; Xiong et al. 2020 predict ×{:.2f}{}", std::exp(*slope.predicted),
                     !std::isfinite(found.low) ? ""
                     : holds                   ? ", as measured"
                                               : ", which is ruled out here");
}

}  // namespace

std::string in_words(const TheoryReport& theory, const ModelDepth& depth, int64_t seeds) {
  std::string text;
  for (const TheoryReport::Slope& slope : theory.layer_slopes) {
    const int64_t layers = slope.stack == StackKind::encoder ? depth.encoder_layers : depth.decoder_layers;
    if (layers < 2 || slope.matrix != 2 || !std::isfinite(slope.fit.slope)) continue;
    text += fmt::format("In the {}, the gradient of W2 {} ({}){}.\n", to_string(slope.stack),
                        growth(std::exp(slope.fit.slope), layers), factor(slope), against_theory(slope));
  }
  if (!text.empty() && seeds > 1 && seeds < 5)
    text += fmt::format("With {} initializations the intervals are wide; --seeds 5 or more narrows them.\n", seeds);
  return text;
}

std::string in_words(const FirstStepReport& report) {
  const Interval& rate = report.critical_rate;
  if (!std::isfinite(rate.mean)) return {};
  const std::string range =
      std::isfinite(rate.low) ? fmt::format(" ({:.2g} to {:.2g})", rate.low, rate.high) : std::string();
  return fmt::format(
      "The first step of {} raises the loss above a learning rate of {:.2g}{}. That limits the first step only; it is "
      "not a recommended rate, which `plumb check` looks for.\n",
      report.optimizer, rate.mean, range);
}

std::string in_words(const Spectrum& spectrum) {
  const double sharpness = std::max(spectrum.max.value, -spectrum.min.value);
  if (!(sharpness > 0)) return {};
  // In percent, rounded so that the rounding errors of the sum do not show.
  const double zero = std::round(1e6 * (1 - spectrum.negative.mean - spectrum.positive.mean)) / 1e4;
  std::string text =
      fmt::format("{:.3g}% of the eigenvalues lie within ±{:.2g}, {:.2g}% below and {:.2g}% above. ",
                  std::max(zero, 0.0), spectrum.zero_band, 100 * spectrum.negative.mean, 100 * spectrum.positive.mean);
  text +=
      spectrum.max.value >= -spectrum.min.value
          ? fmt::format(
                "Above a learning rate of 2/{:.3g} = {:.2g}, steps of gradient descent without momentum grow along the "
                "sharpest direction.\n",
                spectrum.max.value, 2 / spectrum.max.value)
          : fmt::format(
                "The sharpest direction curves down, with a curvature of {:.3g}: no learning rate is stable along "
                "it.\n",
                spectrum.min.value);
  return text;
}

}  // namespace plumb::app
