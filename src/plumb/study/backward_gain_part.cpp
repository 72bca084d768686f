// How much of the gradient each sub-layer passes back at initialization.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/analysis/token_similarity.h"
#include "plumb/base/contains.h"
#include "plumb/report/display_name.h"
#include "plumb/report/measured_figures.h"
#include "plumb/study/cross_attention_gain.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct BackwardGainStudy : InitialModels {};

/// The geometric mean over seeds of number(stack), with its interval.
template <typename Number>
Interval gain_interval(const Gains& gains, StackKind stack, const Number& number) {
  return geometric_interval(
      numbers_in(gains, [&](const BackwardGains& each) { return number(gains_of_stack(each, stack)); }));
}

/// The kinds of sub-layers of a stack, in their order.
std::vector<SubLayerKind> kinds_of(const StackGains& stack) {
  std::vector<SubLayerKind> kinds;
  for (const BackwardGain& part : stack.parts) {
    const std::optional<SubLayerKind> kind = part.point.id.sub_layer;
    if (kind && !contains(kinds, *kind)) kinds.push_back(*kind);
  }
  return kinds;
}

/// ‖∂L/∂x‖ along a stack, relative to that at its result: the product of the gains.
Figure profile_figure(const GainsByArm& measured, StackKind stack, int64_t seeds) {
  Figure figure{
      "stream_gradient_" + to_string(stack),
      fmt::format("Gradient along the residual stream, {}", to_string(stack)),
      fmt::format("Norm of the loss's gradient with respect to the stream after k sub-layers, divided by that "
                  "with respect to the stack's result; geometric mean ({}).",
                  seeds_in_words(seeds)),
      "line",
      {"sub-layers passed, k"},
      {"gradient relative to the result", true}};
  for (const auto& [arm, gains] : measured) {
    Series& line = figure.add(display_name(arm), arm);
    const size_t sub_layers = gains_of_stack(gains->front(), stack).parts.size() - 1;
    for (size_t k = 0; k <= sub_layers; ++k) {
      line.point(k, gain_interval(*gains, stack, [k](const StackGains& one) {
                   return (k == 0 ? one.input_gradient : one.parts[k - 1].gradient) / one.parts.back().gradient;
                 }));
    }
  }
  return figure;
}

InitialGains measure_gains(Model& model, const std::vector<Batch>& batches) {
  InitialGains gains{measure_backward_gains(model, batches), {}};
  if (model.translates() == nullptr) return gains;
  TokenSimilarity similarity;
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    similarity.see(model, batch, context);
  }
  gains.memory_similarity = similarity.means().at({StackKind::encoder});
  return gains;
}

PartResult report_gains(const StudyContext& context, const BackwardGainStudy& part, const GainsByArm& measured) {
  PartResult result;
  Table table{"backward_gain",
              "Backward gain at initialization",
              "Geometric means with 95% intervals: over all sub-layers of a stack, and over those of each kind. The "
              "product of a stack's gains is the gradient at its input over that at its result. Error: the largest "
              "relative difference from differentiating the whole model.",
              {"arm", "stack", "sub-layers", "gain", "low", "high", "product", "low", "high", "error"}};
  OfArms<BackwardGainReport> reports;
  for (const auto& [arm, gains] : measured)
    reports.emplace(arm, summarize(std::vector<BackwardGains>(gains->begin(), gains->end())));
  for (const StackKind stack : stacks_of(context)) {
    result.figures.push_back(gain_figure(stack, reports, part.seeds));
    result.figures.push_back(profile_figure(measured, stack, part.seeds));
    std::vector<std::pair<std::string, Interval>> whole_stacks;
    for (const auto& [arm, gains] : measured) {
      const Interval whole = gain_interval(
          *gains, stack, [](const StackGains& one) { return one.input_gradient / one.parts.back().gradient; });
      double error = 0;
      for (const BackwardGains& each : *gains) error = std::max(error, each.error);
      const auto mean_of = [&, &gains = gains](std::optional<SubLayerKind> kind) {
        return gain_interval(*gains, stack, [kind](const StackGains& one) { return mean_gain(one, kind); });
      };
      table.row(arm, to_string(stack), "all", mean_of({}), whole, error);
      for (const SubLayerKind kind : kinds_of(gains_of_stack(gains->front(), stack)))
        table.row(arm, to_string(stack), in_words(kind), mean_of(kind), Json(), Json(), Json(), Json());
      whole_stacks.emplace_back(display_name(arm), whole);
    }
    result.summary.push_back(
        told({"gradient at initialization", "on its way back through the " + to_string(stack)}, whole_stacks));
  }
  result.tables.push_back(table);
  if (stacks_of(context).size() > 1) report_cross_attention(context, measured, part.seeds, result);
  result.measurements = result_json(measured);
  return result;
}

PartPlan plan(StudyContext& context, const BackwardGainStudy& part) {
  PartPlan plan(context);
  const GainsByArm measured = by_arm(context, [&](const std::string& arm) {
    SeededMeasurement what = initial_models(context, part, "backward-gain", arm);
    what.gradients = 2;
    return over_seeds(plan, context, what, measure_gains);
  });
  if (stacks_of(context).size() > 1) plan_cross_attention(plan, measured);
  plan.report = [&context, part, measured] { return report_gains(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kBackwardGain =
    add_part<BackwardGainStudy>("backward_gain", "the backward gain of every sub-layer at initialization",
                                "Xiong et al. 2020, arXiv 2002.04745", {.order = 13, .any_depth = true, .plan = plan});

}  // namespace
}  // namespace plumb
