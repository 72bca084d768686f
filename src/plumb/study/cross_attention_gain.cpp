#include "plumb/study/cross_attention_gain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/report/display_name.h"

namespace plumb {
namespace {

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
  std::transform(predicted.begin(), predicted.end(), predicted.begin(),
                 [](double similarity) { return predicted_cross_attention_gain(similarity); });
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
Figure cross_attention_figure(const StudyContext& context, const GainsByArm& measured, int64_t seeds) {
  Figure figure{
      "cross_attention_gain",
      "Gradient lost at cross-attention, by the similarity of the encoder's tokens",
      fmt::format("Backward gain of a decoder's cross-attention, geometric mean over its layers ({}), against "
                  "the mean cosine ρ between the tokens that it reads. Line: 1/√(1 + ρ), for Post-LN with values of "
                  "Xavier's size.",
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
    const std::string decoder = arm_named(context, name).model.residual;
    Series*& points = by_decoder[decoder];
    if (points == nullptr) points = &figure.add(display_name(decoder), decoder, "points");
    points->point(confidence_interval(memory_similarities(*gains)).mean,
                  geometric_interval(cross_attention_gains(*gains)));
  }
  return figure;
}

Table cross_attention_table(const GainsByArm& measured) {
  Table table{
      "cross_attention_gain",
      "What cross-attention passes back to the decoder",
      "ρ: mean cosine between the encoder's tokens of a sentence. Gain: geometric mean over the cross-attentions, "
      "with its 95% interval; 1/√(1 + ρ) is predicted for Post-LN with values of Xavier's size. Growth: "
      "gradient of the stream after the decoder's last layer over that after its first.",
      {"arm", "ρ", "gain", "low", "high", "1/√(1 + ρ)", "growth", "low", "high"}};
  for (const auto& [arm, gains] : measured) {
    const double similarity = confidence_interval(memory_similarities(*gains)).mean;
    table.row(arm, similarity, geometric_interval(cross_attention_gains(*gains)),
              predicted_cross_attention_gain(similarity), geometric_interval(decoder_growth(*gains)));
  }
  return table;
}

}  // namespace

void describe(Fields& field, InitialGains& gains) {
  describe(field, static_cast<BackwardGains&>(gains));
  field("memory_similarity", gains.memory_similarity);
}

const StackGains& gains_of_stack(const BackwardGains& gains, StackKind stack) {
  for (const StackGains& each : gains.stacks) {
    if (each.stack == stack) return each;
  }
  return gains.stacks.back();
}

double mean_gain(const StackGains& stack, std::optional<SubLayerKind> kind) {
  double sum = 0;
  int64_t count = 0;
  for (const BackwardGain& part : stack.parts) {
    if (!part.point.id.layer || (kind && part.point.id.sub_layer != kind)) continue;
    sum += std::log(part.gain);
    ++count;
  }
  return std::exp(sum / static_cast<double>(count));
}

void plan_cross_attention(PartPlan& plan, const GainsByArm& measured) {
  for (const auto& [arm, gains] : measured) {
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
}

void report_cross_attention(const StudyContext& context, const GainsByArm& measured, int64_t seeds,
                            PartResult& result) {
  result.figures.insert(result.figures.begin(), cross_attention_figure(context, measured, seeds));
  result.tables.insert(result.tables.begin(), cross_attention_table(measured));
}

}  // namespace plumb
