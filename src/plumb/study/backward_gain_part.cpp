// How much of the gradient each sub-layer passes back at initialization.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/initialization_json.h"
#include "plumb/base/text.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct BackwardGainStudy {
  int64_t layers = 6;
  int64_t seeds = 5;
  int64_t pairs = 100;
};

void describe(Fields& field, BackwardGainStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
}

using Gains = std::vector<BackwardGains>;  // [seed]
using GainsByScheme = std::map<std::string, Planned<Gains>>;

const StackGains& gains_of_stack(const BackwardGains& gains, StackKind stack) {
  for (const StackGains& each : gains.stacks) {
    if (each.stack == stack) return each;
  }
  return gains.stacks.back();
}

/// The geometric mean over seeds of number(stack), with its interval.
template <typename Number>
Interval gain_interval(const Gains& gains, StackKind stack, const Number& number) {
  return geometric_interval(
      numbers_in(gains, [&](const BackwardGains& each) { return number(gains_of_stack(each, stack)); }));
}

/// The geometric mean of the gain over a stack's sub-layers.
double mean_gain(const StackGains& stack) {
  double sum = 0;
  int64_t count = 0;
  for (const BackwardGain& part : stack.parts) {
    if (!part.point.id.layer) continue;
    sum += std::log(part.gain);
    ++count;
  }
  return std::exp(sum / static_cast<double>(count));
}

std::string words_for_kind(SubLayerKind kind) {
  switch (kind) {
    case SubLayerKind::self_attention:
      return "self-attention";
    case SubLayerKind::cross_attention:
      return "cross-attention";
    case SubLayerKind::feed_forward:
      return "feed-forward";
    case SubLayerKind::parallel:
      break;
  }
  return "attention and feed-forward";
}

const char* style_of_kind(SubLayerKind kind) {
  if (kind == SubLayerKind::self_attention) return "dashed";
  return kind == SubLayerKind::cross_attention ? "points" : "solid";
}

/// The gain by layer, with one line for each scheme and kind of sub-layer.
Figure gain_figure(const GainsByScheme& by_scheme, StackKind stack, int64_t seeds) {
  Figure figure{
      "backward_gain_" + to_string(stack),
      fmt::format("Backward gain of the sub-layers, {}", to_string(stack)),
      fmt::format("Norm of the gradient that a sub-layer passes back to its input stream, divided by the norm "
                  "of the gradient that it is given, at initialization; geometric mean over {} seeds with "
                  "its 95% interval. Solid: feed-forward; dashed: self-attention{}.",
                  seeds, stack == StackKind::decoder ? "; points: cross-attention" : ""),
      "line",
      {"layer"},
      {"backward gain", true}};
  for (const auto& [scheme, gains] : by_scheme) {
    std::map<SubLayerKind, Series> lines;
    const StackGains& first = gains_of_stack(gains->front(), stack);
    for (size_t i = 0; i < first.parts.size(); ++i) {
      const LayerId& id = first.parts[i].point.id;
      if (!id.sub_layer) continue;
      const auto [line, is_new] = lines.try_emplace(
          *id.sub_layer, Series{fmt::format("{}, {}", display_name(scheme), words_for_kind(*id.sub_layer)), scheme});
      if (is_new) line->second.style = style_of_kind(*id.sub_layer);
      line->second.point(id.number(),
                         gain_interval(*gains, stack, [i](const StackGains& one) { return one.parts[i].gain; }));
    }
    for (const auto& [kind, line] : lines) figure.series.push_back(line);
  }
  return figure;
}

/// ‖∂L/∂x‖ along a stack, relative to that at its result: the product of the gains.
Figure profile_figure(const GainsByScheme& by_scheme, StackKind stack, int64_t seeds) {
  Figure figure{
      "stream_gradient_" + to_string(stack),
      fmt::format("Gradient along the residual stream, {}", to_string(stack)),
      fmt::format("Norm of the loss's gradient with respect to the stream after k sub-layers, divided by that "
                  "with respect to the stack's result, at initialization: the product of the gains of "
                  "everything after it. Geometric mean over {} seeds with its 95% interval.",
                  seeds),
      "line",
      {"sub-layers passed, k"},
      {"gradient relative to the result", true}};
  for (const auto& [scheme, gains] : by_scheme) {
    Series line{display_name(scheme), scheme};
    const size_t sub_layers = gains_of_stack(gains->front(), stack).parts.size() - 1;
    for (size_t k = 0; k <= sub_layers; ++k) {
      line.point(k, gain_interval(*gains, stack, [k](const StackGains& one) {
                   return (k == 0 ? one.input_gradient : one.parts[k - 1].gradient) / one.parts.back().gradient;
                 }));
    }
    figure.series.push_back(line);
  }
  return figure;
}

PartResult report_gains(const StudyContext& context, const BackwardGainStudy& part, const GainsByScheme& by_scheme) {
  PartResult result;
  Table table{
      "backward_gain",
      "Backward gain at initialization",
      "Per sub-layer: the geometric mean over the sub-layers of a stack. Whole stack: the product of all gains, "
      "the gradient at the stack's input over that at its result. Geometric means over the seeds with their "
      "95% intervals. Error: the largest relative difference between the product of the gains and the gradient "
      "measured by differentiating the whole model.",
      {"scheme", "stack", "per sub-layer", "low", "high", "whole stack", "low", "high", "error"}};
  for (const StackKind stack : stacks_of(context)) {
    result.figures.push_back(gain_figure(by_scheme, stack, part.seeds));
    result.figures.push_back(profile_figure(by_scheme, stack, part.seeds));
    std::vector<std::string> sentences;
    for (const auto& [scheme, gains] : by_scheme) {
      const Interval mean = gain_interval(*gains, stack, mean_gain);
      const Interval whole = gain_interval(
          *gains, stack, [](const StackGains& one) { return one.input_gradient / one.parts.back().gradient; });
      double error = 0;
      for (const BackwardGains& each : *gains) error = std::max(error, each.error);
      table.row(scheme, to_string(stack), mean, whole, error);
      if (!std::isfinite(whole.mean)) {
        sentences.push_back(fmt::format("no gradient with {}", display_name(scheme)));
      } else if (!std::isfinite(whole.low)) {
        sentences.push_back(fmt::format("{:.3g} times with {} (one seed)", whole.mean, display_name(scheme)));
      } else {
        sentences.push_back(fmt::format("{:.3g} times ({:.3g} to {:.3g}) with {}", whole.mean, whole.low, whole.high,
                                        display_name(scheme)));
      }
    }
    result.summary.push_back(
        fmt::format("At initialization, the gradient at the input of the {}, relative to that at its result, is {} ({} "
                    "layers; {} seeds, 95% intervals).",
                    to_string(stack), join(sentences, ", "), part.layers, part.seeds));
  }
  result.tables.push_back(table);
  result.measurements = result_json(by_scheme);
  return result;
}

PartPlan plan(StudyContext& context, const BackwardGainStudy& part) {
  PartPlan plan(context);
  GainsByScheme by_scheme;
  for (const std::string& scheme : context.config.study.schemes) {
    by_scheme.emplace(scheme, over_seeds(plan, context,
                                         {.name = "backward-gain-" + file_name(scheme),
                                          .label = "backward gains, " + display_name(scheme),
                                          .model = model_for(context, scheme, part.layers),
                                          .seeds = part.seeds,
                                          .pairs = part.pairs,
                                          .tokens = 40},
                                         [](Model& model, const std::vector<Batch>& batches) {
                                           return measure_backward_gains(model, batches);
                                         }));
  }
  plan.report = [&context, part, by_scheme] { return report_gains(context, part, by_scheme); };
  return plan;
}

[[maybe_unused]] const bool kBackwardGain =
    add_part<BackwardGainStudy>("backward_gain", "the backward gain of every sub-layer at initialization",
                                "Xiong et al. 2020, arXiv 2002.04745", {.place = 12, .plan = plan});

}  // namespace
}  // namespace plumb
