// How much of the gradient each sub-layer passes back at initialization.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/backward_gain.h"
#include "plumb/analysis/token_similarity.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct BackwardGainStudy : InitialModels {};

/// The gains of one model, and the mean cosine between the tokens that its cross-attention reads.
struct InitialGains : BackwardGains {
  std::optional<double> memory_similarity;
};
void describe(Fields& field, InitialGains& gains) {
  describe(field, static_cast<BackwardGains&>(gains));
  field("memory_similarity", gains.memory_similarity);
}

using Gains = std::vector<InitialGains>;  // [seed]
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

/// The geometric mean of the gain over a stack's sub-layers, or over those of one kind.
double mean_gain(const StackGains& stack, std::optional<SubLayerKind> kind = {}) {
  double sum = 0;
  int64_t count = 0;
  for (const BackwardGain& part : stack.parts) {
    if (!part.point.id.layer || (kind && part.point.id.sub_layer != kind)) continue;
    sum += std::log(part.gain);
    ++count;
  }
  return std::exp(sum / static_cast<double>(count));
}

/// The kinds of sub-layers of a stack, in their order.
std::vector<SubLayerKind> kinds_of(const StackGains& stack) {
  std::vector<SubLayerKind> kinds;
  for (const BackwardGain& part : stack.parts) {
    const std::optional<SubLayerKind> kind = part.point.id.sub_layer;
    if (kind && std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  return kinds;
}

const char* style_of_kind(SubLayerKind kind) {
  if (kind == SubLayerKind::self_attention) return "dashed";
  return kind == SubLayerKind::cross_attention ? "points" : "solid";
}

/// The gain by layer, with one line for each scheme and kind of sub-layer.
Figure gain_figure(const GainsByScheme& measured, StackKind stack, int64_t seeds) {
  Figure figure{
      "backward_gain_" + to_string(stack),
      fmt::format("Backward gain of the sub-layers, {}", to_string(stack)),
      fmt::format("Norm of the gradient that a sub-layer passes back, divided by that of the gradient that it "
                  "is given; geometric mean ({}). Solid: feed-forward; dashed: self-attention; points: "
                  "cross-attention.",
                  seeds_in_words(seeds)),
      "line",
      {"layer"},
      {"backward gain", true}};
  for (const auto& [scheme, gains] : measured) {
    std::map<SubLayerKind, Series*> lines;
    const StackGains& first = gains_of_stack(gains->front(), stack);
    for (size_t i = 0; i < first.parts.size(); ++i) {
      const LayerId& id = first.parts[i].point.id;
      if (!id.sub_layer) continue;
      Series*& line = lines[*id.sub_layer];
      if (line == nullptr) {
        line = &figure.add(fmt::format("{}, {}", display_name(scheme), in_words(*id.sub_layer)), scheme,
                           style_of_kind(*id.sub_layer));
      }
      line->point(id.number(), gain_interval(*gains, stack, [i](const StackGains& one) { return one.parts[i].gain; }));
    }
  }
  return figure;
}

/// ‖∂L/∂x‖ along a stack, relative to that at its result: the product of the gains.
Figure profile_figure(const GainsByScheme& measured, StackKind stack, int64_t seeds) {
  Figure figure{
      "stream_gradient_" + to_string(stack),
      fmt::format("Gradient along the residual stream, {}", to_string(stack)),
      fmt::format("Norm of the loss's gradient with respect to the stream after k sub-layers, divided by that "
                  "with respect to the stack's result; geometric mean ({}).",
                  seeds_in_words(seeds)),
      "line",
      {"sub-layers passed, k"},
      {"gradient relative to the result", true}};
  for (const auto& [scheme, gains] : measured) {
    Series& line = figure.add(display_name(scheme), scheme);
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

std::vector<double> memory_similarities(const Gains& gains) {
  return numbers_in(gains, [](const InitialGains& each) { return each.memory_similarity.value(); });
}

/// [seed]: the geometric mean over the decoder's cross-attentions.
std::vector<double> cross_attention_gains(const Gains& gains) {
  return numbers_in(gains, [](const InitialGains& each) {
    return mean_gain(gains_of_stack(each, StackKind::decoder), SubLayerKind::cross_attention);
  });
}

/// [seed]: relative to what the similarity of the memory predicts for Post-LN.
std::vector<double> relative_to_prediction(const Gains& gains) {
  std::vector<double> predicted = memory_similarities(gains);
  std::transform(predicted.begin(), predicted.end(), predicted.begin(), predicted_cross_attention_gain);
  return seed_by_seed(cross_attention_gains(gains), predicted, std::divides<>());
}

/// [seed]: ‖∂L/∂x‖ after the decoder's last layer / after its first.
std::vector<double> decoder_growth(const Gains& gains) {
  return numbers_in(gains, [](const InitialGains& each) {
    const std::vector<BackwardGain>& parts = gains_of_stack(each, StackKind::decoder).parts;
    const auto follows_first_layer = [](const BackwardGain& part) { return part.point.id.layer.value_or(1) > 0; };
    const auto second = std::find_if(parts.begin(), parts.end(), follows_first_layer);  // or the result, of one layer
    return parts[parts.size() - 2].gradient / std::prev(second)->gradient;
  });
}

/// Every arm's gain against the similarity of what its cross-attention reads, and the curve predicted for Post-LN. Arms
/// with the same scheme in the decoder are one series.
Figure cross_attention_figure(const StudyContext& context, const GainsByScheme& measured, int64_t seeds) {
  Figure figure{
      "cross_attention_gain",
      "Gradient lost at cross-attention, by the similarity of the encoder's tokens",
      fmt::format("Backward gain of a decoder's cross-attention, geometric mean over its layers ({}), against "
                  "the mean cosine ρ between the tokens that it reads. Line: 1/√(1 + ρ), for Post-LN.",
                  seeds_in_words(seeds)),
      "line",
      {"mean cosine between the encoder's tokens, ρ"},
      {"backward gain"}};
  Series& curve = figure.add("1/√(1 + ρ)", "prediction", "dashed");
  for (int i = -1; i <= 10; ++i) {
    const double similarity = i / 10.0;
    curve.point(similarity, predicted_cross_attention_gain(similarity));
  }
  std::map<std::string, Series*> by_decoder;
  for (const auto& [name, gains] : measured) {
    const StudyArm* arm = arm_named(context, name);
    const std::string decoder = arm == nullptr ? name : arm->model.residual;
    Series*& points = by_decoder[decoder];
    if (points == nullptr) points = &figure.add(display_name(decoder), decoder, "points");
    points->point(confidence_interval(memory_similarities(*gains)).mean,
                  geometric_interval(cross_attention_gains(*gains)));
  }
  return figure;
}

Table cross_attention_table(const GainsByScheme& measured) {
  Table table{
      "cross_attention_gain",
      "What cross-attention passes back to the decoder",
      "ρ: mean cosine between the encoder's tokens of a sentence. Gain: geometric mean over the cross-attentions, "
      "with its 95% interval; 1/√(1 + ρ) is predicted for Post-LN. Growth: gradient of the stream after the "
      "decoder's last layer over that after its first.",
      {"scheme", "ρ", "gain", "low", "high", "1/√(1 + ρ)", "growth", "low", "high"}};
  for (const auto& [scheme, gains] : measured) {
    const double similarity = confidence_interval(memory_similarities(*gains)).mean;
    table.row(scheme, similarity, geometric_interval(cross_attention_gains(*gains)),
              predicted_cross_attention_gain(similarity), geometric_interval(decoder_growth(*gains)));
  }
  return table;
}

PartResult report_gains(const StudyContext& context, const BackwardGainStudy& part, const GainsByScheme& measured) {
  PartResult result;
  Table table{"backward_gain",
              "Backward gain at initialization",
              "Geometric means with 95% intervals: over all sub-layers of a stack, and over those of each kind. The "
              "product of a stack's gains is the gradient at its input over that at its result. Error: the largest "
              "relative difference from differentiating the whole model.",
              {"scheme", "stack", "sub-layers", "gain", "low", "high", "product", "low", "high", "error"}};
  for (const StackKind stack : stacks_of(context)) {
    result.figures.push_back(gain_figure(measured, stack, part.seeds));
    result.figures.push_back(profile_figure(measured, stack, part.seeds));
    std::vector<std::pair<std::string, Interval>> whole_stacks;
    for (const auto& [scheme, gains] : measured) {
      const Interval whole = gain_interval(
          *gains, stack, [](const StackGains& one) { return one.input_gradient / one.parts.back().gradient; });
      double error = 0;
      for (const BackwardGains& each : *gains) error = std::max(error, each.error);
      const auto mean_of = [&, &gains = gains](std::optional<SubLayerKind> kind) {
        return gain_interval(*gains, stack, [kind](const StackGains& one) { return mean_gain(one, kind); });
      };
      table.row(scheme, to_string(stack), "all", mean_of({}), whole, error);
      for (const SubLayerKind kind : kinds_of(gains_of_stack(gains->front(), stack)))
        table.row(scheme, to_string(stack), in_words(kind), mean_of(kind), Json(), Json(), Json(), Json());
      whole_stacks.emplace_back(display_name(scheme), whole);
    }
    result.summary.push_back(fmt::format(
        "At initialization, gradient at the input of the {} / at its result: {} ({}; {}).", to_string(stack),
        with_intervals(whole_stacks), depth_in_words(context, part.layers), seeds_in_words(part.seeds)));
  }
  result.tables.push_back(table);
  if (stacks_of(context).size() > 1) {
    result.figures.insert(result.figures.begin(), cross_attention_figure(context, measured, part.seeds));
    result.tables.insert(result.tables.begin(), cross_attention_table(measured));
  }
  result.measurements = result_json(measured);
  return result;
}

PartPlan plan(StudyContext& context, const BackwardGainStudy& part) {
  PartPlan plan(context);
  const GainsByScheme measured = by_scheme(context, [&](const std::string& scheme) {
    OverSeeds what = of_models(context, part, "backward-gain", scheme);
    what.tokens = 40;
    return over_seeds(plan, context, what, measure_gains);
  });
  for (const auto& [arm, gains] : measured) {
    if (stacks_of(context).size() < 2) break;
    const auto quantity = [&, arm = arm, gains = gains](const char* name, const char* meaning, Scale scale,
                                                        std::vector<double> (*values)(const Gains&),
                                                        const char* figure = "cross_attention_gain") {
      plan.quantity(name, meaning, scale, arm, [gains, values] { return values(*gains); }).figure = figure;
    };
    quantity("memory_similarity", "mean cosine between the encoder's tokens", Scale::linear, memory_similarities);
    quantity("cross_attention_gain", "backward gain of the cross-attentions", Scale::logarithmic,
             cross_attention_gains);
    quantity("cross_attention_gain_over_prediction", "backward gain of the cross-attentions · √(1 + ρ)",
             Scale::logarithmic, relative_to_prediction);
    quantity("decoder_growth", "gradient of the stream after the decoder's last layer / after its first",
             Scale::logarithmic, decoder_growth, "stream_gradient_decoder");
  }
  plan.report = [&context, part, measured] { return report_gains(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kBackwardGain =
    add_part<BackwardGainStudy>("backward_gain", "the backward gain of every sub-layer at initialization",
                                "Xiong et al. 2020, arXiv 2002.04745", {.place = 12, .any_depth = true, .plan = plan});

}  // namespace
}  // namespace plumb
