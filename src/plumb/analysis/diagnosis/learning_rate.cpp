// Divergence and the learning rate: the curvature against the optimizer's threshold of stability (Cohen et al. 2022,
// arXiv 2207.14484), and the critical learning rate of a step along P⁻¹·∇L (arXiv 2601.16979).
#include <fmt/format.h>

#include <cmath>

#include "plumb/analysis/critical_rate.h"
#include "plumb/base/error.h"
#include "plumb/run/config.h"
#include "plumb/train/diagnosis.h"

namespace plumb {
namespace {

std::string symbol_of(const std::string& name) { return name == "preconditioned" ? "λ_max(P⁻¹H)" : "λ_max(H)"; }

/// "λ_max(P⁻¹H)·η was 61 at step 400, above 38". `found` is a measurement of the watch, whose threshold is stable/η.
std::optional<Finding> compare(const Json& found, const std::string& name, double stable, const std::string& when) {
  if (!found.is_object() || !found.contains("threshold")) return std::nullopt;
  const double rate = stable / number_of(found.at("threshold"));
  const double product = number_of(found.at("value")) * rate;
  if (!std::isfinite(product)) return std::nullopt;
  Finding finding{fmt::format("{}·η was {:.3g} {}, {} {:.3g}, above which oscillations grow (η = {:.3g})",
                              symbol_of(name), product, when, product > stable ? "above" : "below", stable, rate),
                  ""};
  if (found.contains("parameter"))
    finding.text += fmt::format("; {:.0f}% of that direction is {}", 100 * number_of(found["share"]),
                                found["parameter"].get<std::string>());
  if (product > stable) {
    finding.advice = fmt::format(
        "a learning rate below {:.2g} at this point, or a longer train.warm_up, during which the curvature falls",
        rate * stable / product);
  }
  return finding;
}

std::vector<Finding> find_curvature(const DivergedRun& diverged) {
  std::vector<Finding> all;
  const auto preconditioning = diverged.run.optimizer.preconditioning();
  if (!preconditioning) return all;
  const double stable = preconditioning->stable_product;
  for (const std::string name : {"preconditioned", "hessian"}) {
    int64_t step = 0;
    const Json last = diverged.last("curvature", name, &step);
    if (auto finding = compare(last, name, stable, fmt::format("at the last watch, step {}", step)))
      all.push_back(*finding);
  }
  if (!diverged.finite || !all.empty()) return all;
  const auto& entry = watches().at("curvature");
  const Json now = entry.make(entry.options)->measure(diverged.run);
  for (const std::string name : {"preconditioned", "hessian"}) {
    if (!now.contains(name)) continue;
    if (auto finding = compare(now[name], name, stable, "at the end")) all.push_back(*finding);
  }
  return all;
}

std::vector<Finding> find_critical_rate(const DivergedRun& diverged) {
  if (!diverged.finite) return {};
  const WatchedRun& run = diverged.run;
  const LossFunction loss = [&run](Model& model, const Batch& batch, const LossOptions& options,
                                   ForwardContext& context) { return run.task.loss(model, batch, options, context); };
  const std::vector<Tensor> values = run.model.parameters().values();
  double weight = 0;
  for (const Batch& batch : run.batches) weight += batch.weight();
  Tensor gradient = at::zeros_like(run.model.parameters().flat());
  for (const Batch& batch : run.batches) {
    ForwardContext context(Pass::measurement);
    const Loss found = loss(run.model, batch, {run.config.label_smoothing, 1 / weight, false}, context);
    gradient.add_(joined(gradients({found.value}, values, {})));
  }
  std::vector<Tensor> update;
  const std::vector<Tensor> pieces = run.model.parameters().split(gradient);
  const auto preconditioning = run.optimizer.preconditioning();
  if (!preconditioning) return {};
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
  return {{fmt::format("a step along P⁻¹·∇L from the last parameters raises the loss above a learning rate of {:.3g}; "
                       "that of the run was {:.3g}, {:.3g} times as much",
                       critical->rate(), run.learning_rate, run.learning_rate / critical->rate()),
           ""}};
}

[[maybe_unused]] const bool kLearningRateDiagnosed =
    diagnoses().add("curvature", "η against the threshold of stability", "arXiv 2207.14484", find_curvature) &&
    diagnoses().add("critical_rate", "η against the critical learning rate of a step", "arXiv 2601.16979",
                    find_critical_rate);

}  // namespace
}  // namespace plumb
