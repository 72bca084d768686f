#include "initialization_text.h"

#include "in_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumb::app {
namespace {

/// "1.234 (1.1 .. 1.4)": the interval of a geometric mean is not symmetric.
std::string with_ends(const Interval& interval) {
  if (!std::isfinite(interval.mean)) return "none";
  if (!std::isfinite(interval.low)) return fmt::format("{:.4g}", interval.mean);
  return fmt::format("{:.4g} ({:.3g} .. {:.3g})", interval.mean, interval.low, interval.high);
}

std::string row(const std::string& name, const std::string& first, const std::string& second,
                const std::string& third = {}) {
  std::string text = fmt::format("  {:<40} {:<26} {:<26} {}", name, first, second, third);
  return text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
}

std::string gains_text(const BackwardGainReport& report) {
  std::string text = "\nbackward gain: |gradient passed back to the stream| / |gradient received|\n";
  text += row("", "|dL/dx|", "gain", "gain to memory");
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    text += row(to_string(stack.stack) + ".input", with_ends(stack.input_gradient), "");
    for (const BackwardGainReport::Part& part : stack.parts) {
      text += row(to_string(part.point), with_ends(part.gradient), with_ends(part.gain),
                  part.memory_gain ? with_ends(*part.memory_gain) : "");
    }
  }
  return text +
         fmt::format("  the gains multiply out to the gradients, with a relative error of {:.2g}\n", report.error);
}

std::string first_step_text(const FirstStepReport& report) {
  std::string text =
      fmt::format("\nfirst step of {}: change of the logits per unit of learning rate\n", report.optimizer);
  for (const LogitChangesReport::Layer& layer : report.logits.by_layer)
    text += row(layer.layer ? to_string(*layer.layer) : "outside the layers", with_ends(layer.change), "");
  text += row("all together", with_ends(report.logits.total), "");
  text += fmt::format("  critical learning rate {}", with_ends(report.critical_rate));
  if (std::isfinite(report.passes)) {
    text += fmt::format(", critical sharpness {:.4g}, from {:.3g} forward passes", 2 / report.critical_rate.mean,
                        report.passes);
  }
  if (report.momentum_gain != 1) {
    text += fmt::format("; momentum makes steps {:.3g} times as long while the gradient stays", report.momentum_gain);
  }
  if (report.without_rate > 0) text += fmt::format("; none found in {} of the initializations", report.without_rate);
  return text + '\n' + in_words(report);
}

std::string curvature_text(const CurvatureSplitReport& report) {
  std::string text = "\ncurvature: largest eigenvalue, and smallest\n";
  text += row("", "Hessian", "Gauss-Newton part", "rest");
  const auto add = [&](const std::string& name, const CurvatureSplitReport::Ends& split) {
    const auto value = [](const CurvatureSplitReport::Value& one) { return interval_text(one.over_seeds); };
    text += row(name, value(split.hessian.max), value(split.gauss_newton.max), value(split.rest.max));
    text += row("", value(split.hessian.min), value(split.gauss_newton.min), value(split.rest.min));
  };
  add("all parameters", report.whole);
  double error = 0;
  for (const auto* matrix : {&report.whole.hessian, &report.whole.gauss_newton, &report.whole.rest})
    error = std::max({error, matrix->max.error, matrix->min.error});
  for (const CurvatureSplitReport::Layer& layer : report.layers) add(to_string(layer.id), layer.split);
  return text + fmt::format("  largest Ritz residual, over all parameters: {:.2g}\n", error);
}

}  // namespace

std::string interval_text(const Interval& interval, double unit) {
  const double mean = interval.mean / unit;
  if (!std::isfinite(interval.low)) return fmt::format("{:.4g}", mean);
  return fmt::format("{:.4g} ± {:.2g}", mean, interval.high / unit - mean);
}

std::string text_of(const InitializationReport& report) {
  std::string text;
  if (report.gains) text += gains_text(*report.gains);
  for (const FirstStepReport& step : report.first_steps) text += first_step_text(step);
  if (report.curvature) text += curvature_text(*report.curvature);
  return text;
}

}  // namespace plumb::app
