#include "plumb/analysis/initialization.h"

#include <limits>

#include "plumb/base/error.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

void describe(Fields& field, FirstStep& step) {
  field("optimizer", step.optimizer);
  field("momentum_gain", step.momentum_gain);
  field("logit_change", step.logits.total);
  field.sections("by_layer", step.logits.by_layer);
  field.section("critical", step.critical);
}

FirstStep measure_first_step(Model& model, const std::vector<Batch>& batches, const std::string& optimizer,
                             const VariantOptions& optimizer_options, double label_smoothing, const Group& group) {
  const Tensor gradient = mean_loss(model, batches, label_smoothing, model_loss, group).gradient;
  const Tensor update = first_update(model.parameters(), gradient, optimizer, optimizer_options);
  group.broadcast(update);  // bitwise identical in all processes
  CriticalRateOptions options;
  options.label_smoothing = label_smoothing;
  options.group = group;
  return {optimizer, measure_logit_changes(model, batches, model.tangent(update), group),
          critical_learning_rate(model, batches, gradient, update, options),
          make_optimizer(optimizer, model.parameters(), optimizer_options)->beginning().momentum_gain};
}

InitializationMeasurement measure_initialization(Model& model, const std::vector<Batch>& batches,
                                                 const InitializationOptions& options) {
  InitializationMeasurement measurement;
  if (options.gains) {
    measurement.gains = measure_backward_gains(model, batches, options.label_smoothing, model_loss, options.group);
  }
  for (const std::string& optimizer : options.first_steps) {
    measurement.first_steps.push_back(
        measure_first_step(model, batches, optimizer, {}, options.label_smoothing, options.group));
  }
  if (options.curvature_steps > 0) {
    CurvatureSplitOptions split;
    split.steps = options.curvature_steps;
    split.layer_steps = options.layer_curvature_steps;
    split.seed = options.seed;
    split.label_smoothing = options.label_smoothing;
    split.group = options.group;
    measurement.curvature = measure_curvature_split(model, batches, split);
  }
  return measurement;
}

FirstStepReport summarize(const std::vector<FirstStep>& measurements) {
  if (measurements.empty()) throw Error("no first steps to summarize");
  FirstStepReport report{measurements.front().optimizer, {}, {}};
  report.momentum_gain = measurements.front().momentum_gain;
  std::vector<LogitChanges> changes;
  std::vector<double> rates;
  for (const FirstStep& each : measurements) {
    changes.push_back(each.logits);
    if (!each.critical) {
      ++report.without_rate;
      continue;
    }
    rates.push_back(each.critical->rate());
    report.passes += static_cast<double>(each.critical->passes);
  }
  report.logits = summarize(changes);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  report.critical_rate = rates.empty() ? Interval{kNone, kNone, kNone, 0} : geometric_interval(rates);
  report.passes = rates.empty() ? kNone : report.passes / static_cast<double>(rates.size());
  return report;
}

InitializationReport summarize(const std::vector<InitializationMeasurement>& measurements) {
  if (measurements.empty()) throw Error("no initializations to summarize");
  InitializationReport report;
  const auto each = [&](const auto& take) {
    std::vector<std::decay_t<decltype(take(measurements.front()))>> all;
    for (const InitializationMeasurement& measurement : measurements) all.push_back(take(measurement));
    return summarize(all);
  };
  const InitializationMeasurement& first = measurements.front();
  if (first.gains) report.gains = each([](const auto& measurement) { return measurement.gains.value(); });
  for (size_t i = 0; i < first.first_steps.size(); ++i)
    report.first_steps.push_back(each([i](const auto& measurement) { return measurement.first_steps[i]; }));
  if (first.curvature) report.curvature = each([](const auto& measurement) { return measurement.curvature.value(); });
  return report;
}

}  // namespace plumb
