// Divergence and the learning rate: the curvature against the optimizer's threshold of stability (Cohen et al. 2022,
// arXiv 2207.14484), and the critical learning rate of a step along P⁻¹·∇L (arXiv 2601.16979).
#include <fmt/format.h>

#include <cmath>

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/watch/curvature.h"
#include "plumb/run/config.h"
#include "plumb/train/alarm.h"
#include "plumb/train/diagnosis.h"

namespace plumb::check {
namespace {

/// λ_max of H or of P⁻¹H: how to find it in a measurement, and its name in sentences.
struct Matrix {
  const char* symbol;
  const Sharpness* (*of)(const CurvatureMeasurement&);
};
constexpr Matrix kMatrices[] = {
    {"λ_max(P⁻¹H)",
     [](const CurvatureMeasurement& all) { return all.preconditioned ? &*all.preconditioned : nullptr; }},
    {"λ_max(H)", [](const CurvatureMeasurement& all) { return &all.hessian; }}};

/// "λ_max(P⁻¹H)·η was 61 at step 400, above 38". `found` has the threshold stable/η, if any.
std::optional<Finding> compare(const Sharpness& found, const char* symbol, double stable, const std::string& when) {
  if (!found.threshold) return std::nullopt;
  const double rate = stable / *found.threshold;
  const double product = found.found.value * rate;
  if (!std::isfinite(product)) return std::nullopt;
  Finding finding{.raised = product > stable, .where = found.parameter, .value = product, .threshold = stable};
  finding.text = fmt::format("{}·η was {:.3g} {}, {} {:.3g}, above which oscillations grow (η = {:.3g})", symbol,
                             product, when, finding.raised ? "above" : "below", stable, rate);
  if (!found.parameter.empty())
    finding.text += fmt::format("; {:.0f}% of that direction is {}", 100 * found.share, found.parameter);
  if (finding.raised) {
    finding.advice = fmt::format(
        "a learning rate below {:.2g} at this point, or a longer train.warm_up, during which the curvature falls",
        rate * stable / product);
  }
  return finding;
}

std::vector<Finding> explain_by_curvature(const DivergedRun& diverged) {
  std::vector<Finding> all;
  const auto preconditioning = diverged.run.optimizer.preconditioning();
  if (!preconditioning) return all;
  const double stable = preconditioning->stable_product;
  for (const Matrix& matrix : kMatrices) {
    const auto [last, step] = diverged.last<CurvatureMeasurement>(
        [&matrix](const CurvatureMeasurement& watched) { return matrix.of(watched) != nullptr; });
    if (!last) continue;
    if (auto finding =
            compare(*matrix.of(*last), matrix.symbol, stable, fmt::format("at the last watch, step {}", step)))
      all.push_back(*finding);
  }
  if (!diverged.finite || !all.empty()) return all;
  const auto& entry = watches().at("curvature");
  const Described now = entry.make(entry.options)->measure(diverged.run);
  for (const Matrix& matrix : kMatrices) {
    const Sharpness* found = matrix.of(now.as<CurvatureMeasurement>());
    if (found == nullptr) continue;
    if (auto finding = compare(*found, matrix.symbol, stable, "at the end")) all.push_back(*finding);
  }
  return all;
}

std::vector<Finding> explain_by_critical_rate(const DivergedRun& diverged) {
  if (!diverged.finite) return {};
  const WatchedRun& run = diverged.run;
  const auto preconditioning = run.optimizer.preconditioning();
  if (!preconditioning) return {};
  const LossFunction loss = loss_of(run.task);
  const Tensor gradient = mean_loss(run.model, run.batches, run.config.label_smoothing, loss).gradient;
  const std::vector<Tensor> pieces = run.model.parameters().split(gradient);
  std::vector<Tensor> update;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const double factor =
        run.settings[i].frozen || !(run.learning_rate > 0) ? 0.0 : run.settings[i].learning_rate / run.learning_rate;
    update.push_back(preconditioning->diagonal.empty() ? pieces[i] * factor
                                                       : pieces[i] * factor / preconditioning->diagonal[i]);
  }
  CriticalRateOptions search;
  search.start = run.learning_rate;
  search.label_smoothing = run.config.label_smoothing;
  search.loss = loss;
  for (const ParameterStep& each : run.settings) search.frozen.push_back(each.frozen);
  const auto critical = critical_learning_rate(run.model, run.batches, gradient, joined(update), search);
  if (!critical) return {};
  Finding finding{.value = run.learning_rate, .threshold = critical->rate()};
  finding.text = fmt::format(
      "a step along P⁻¹·∇L from the last parameters raises the loss above a learning rate of {:.3g}; that of the run "
      "was {:.3g}, {:.3g} times as much",
      finding.threshold, finding.value, finding.value / finding.threshold);
  return {finding};
}

[[maybe_unused]] const bool kLearningRateAlarms =
    alarms().add("curvature", "of a run that has diverged: η against the threshold of stability",
                 "Cohen et al. 2022, arXiv 2207.14484", {.explain = explain_by_curvature}) &&
    alarms().add("critical_rate", "of a run that has diverged: η against the critical learning rate of a step",
                 "arXiv 2601.16979", {.explain = explain_by_critical_rate});

}  // namespace
}  // namespace plumb::check
