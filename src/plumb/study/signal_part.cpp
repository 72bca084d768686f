// Activations in the setting of the theory: Xiong et al. 2020, Lemma 2.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct SignalStudy {
  int64_t layers = 6;
  std::vector<int64_t> widths = {32, 64, 128};
  int64_t seeds = 5;
  int64_t pairs = 100;
};

void describe(Fields& field, SignalStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("widths", part.widths, "values of `d_model`", count_from(2).each_once());
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
}

/// Of one model.
struct Signal {
  std::vector<double> squares;  // by layer: mean squared norm over width
  double delta = 0;             // the largest over the layers, at ε = 0.1
};

void describe(Fields& field, Signal& signal) {
  field("squares", signal.squares);
  field("delta", signal.delta);
}

using Signals = Planned<std::vector<Signal>>;  // [seed]

/// [seed]
std::vector<double> squares_at(const std::vector<Signal>& signals, size_t layer) {
  return numbers_in(signals, [layer](const Signal& each) { return each.squares.at(layer); });
}

/// The measurements of one arm, in the theory's initialization for each width, and in the usual one.
struct ArmSignals {
  std::vector<Signals> theory;   // by width
  std::optional<Signals> usual;  // at the largest width

  /// At the largest width.
  [[nodiscard]] const std::vector<Signal>& widest(const std::vector<int64_t>& widths) const {
    return *theory[static_cast<size_t>(std::max_element(widths.begin(), widths.end()) - widths.begin())];
  }
};
using SignalsByArm = std::map<std::string, ArmSignals>;

Signals planned_signal(PartPlan& plan, StudyContext& context, const std::string& arm, int64_t width,
                       const std::string& initialization, const SignalStudy& part) {
  return over_seeds(plan, context,
                    {.name = fmt::format("signal-{}-{}-{}", arm, initialization, width),
                     .label = fmt::format("signal, {}, width {}", display_name(arm), width),
                     .model = theory_model(context, arm, width, initialization, part.layers),
                     .seeds = part.seeds,
                     .pairs = part.pairs},
                    [arm, width, layers = part.layers, first = first_stack(context)](
                        Model& model, const std::vector<Batch>& batches) {
                      const SignalProfile profile = measure_signal(model, batches);
                      Signal signal;
                      for (int64_t layer = 0; layer < layers; ++layer) {
                        // The activation that the lemma is about. Post-LN: the sum before the second norm; Pre-LN: the
                        // stream.
                        const LayerPoint& point = profile.at({{first, layer, SubLayerKind::feed_forward},
                                                              arm == "post-ln" ? Point::sum : Point::stream});
                        signal.squares.push_back(point.mean_square / static_cast<double>(width));
                        signal.delta = std::max(signal.delta, point.delta_at_0_1);
                      }
                      return signal;
                    });
}

Figure activation_figure(const SignalsByArm& measured, StackKind stack, int64_t width, const SignalStudy& part) {
  Figure figure{
      "activations",
      "Activations by layer, compared with Lemma 2",
      fmt::format("Mean squared norm in the {} divided by d at initialization, d = {}: for Post-LN of the sum "
                  "that enters each layer's second norm, for Pre-LN of the stream after each layer. Solid: "
                  "the theory's setting (one head, W^Q = W^K = 0); dashed: Xavier W^Q, W^K and W^O.",
                  to_string(stack), width),
      "line",
      {"layer"},
      {"E‖x‖² / d"}};
  const auto fill = [](Series& series, const std::vector<Signal>& signals) {
    for (size_t layer = 0; layer < signals.front().squares.size(); ++layer)
      series.point(layer + 1, confidence_interval(squares_at(signals, layer)));
  };
  for (const auto& [arm, signals] : measured) {
    fill(figure.add(display_name(arm), arm), signals.widest(part.widths));
    fill(figure.add(display_name(arm) + ", xavier-normal", arm, "dashed"), **signals.usual);
  }
  const auto d = static_cast<double>(width);
  const auto add_bound = [&](const char* name, const char* group, const auto& at_layer) {
    Series& line = figure.add(name, group, "dashed");
    for (int64_t layer = 1; layer <= part.layers; ++layer) line.point(layer, at_layer(layer) / d);
  };
  if (measured.count("post-ln") != 0)
    add_bound("Lemma 2, Post-LN: 3/2", "theory", [&](int64_t) { return theory::lemma2_post_ln(width); });
  if (measured.count("pre-ln") != 0) {
    const auto bounds = [&](int64_t layer) { return theory::lemma2_pre_ln(layer, width); };
    add_bound("Lemma 2, Pre-LN: 1 + l/2", "lower bound", [&](int64_t layer) { return bounds(layer).first; });
    add_bound("Lemma 2, Pre-LN: 1 + 3l/2", "upper bound", [&](int64_t layer) { return bounds(layer).second; });
  }
  return figure;
}

void judge_activations(const StudyContext& context, const SignalStudy& part, const SignalsByArm& measured,
                       int64_t widest, PartResult& result) {
  const auto d = static_cast<double>(widest);
  for (const auto& [arm, all] : measured) {
    const std::vector<Signal>& signals = all.widest(part.widths);
    const std::string setting = setting_of(context, theory_model(context, arm, widest, "theory", part.layers));
    const bool post_ln = arm == "post-ln";
    std::vector<Condition> layers;
    for (int64_t layer = 1; layer <= part.layers; ++layer) {
      const auto [low, high] = theory::lemma2_pre_ln(layer, widest);
      layers.push_back({squares_at(signals, static_cast<size_t>(layer - 1)),
                        post_ln ? Region::around(1.5, 0.1 * 1.5) : Region{low / d, high / d}});
    }
    result.verdicts.push_back(
        {post_ln ? "lemma2_post" : "lemma2_pre",
         post_ln ? "Post-LN: E‖x‖² before the second norm is 3d/2 in every layer"
                 : "Pre-LN: (1 + l/2)·d ≤ E‖x‖² ≤ (1 + 3l/2)·d after layer l",
         "Xiong et al. 2020, Lemma 2", setting,
         fmt::format("E‖x‖²/d {}, in the worst of {} layers",
                     post_ln ? "before the second norm" : "after a layer, between its bounds", layers.size()),
         judge_each(layers),
         fmt::format("In layer {} E‖x‖²/d is {:.2f}.", part.layers, confidence_interval(layers.back().values).mean),
         "activations"});
    // The share of tokens that exceed the mean by 10% decreases with width; the claim is about d = 512.
    constexpr int64_t kClaimed = 512;
    result.verdicts.push_back(
        {fmt::format("bounded_{}", arm),
         fmt::format("{}: the squared norms are (0.1, 0.125)-bounded", display_name(arm)),
         "Xiong et al. 2020, section 3.3", setting,
         "largest share of a layer's tokens whose ‖x‖² exceeds the mean by more than 10%",
         not_testable_because(judge(numbers_in(signals, &Signal::delta), Region::below(0.125)),
                              widest < kClaimed
                                  ? fmt::format("the share depends on the width; the claim is about d = {}", kClaimed)
                                  : ""),
         "", "activations"});
  }
}

PartPlan plan(StudyContext& context, const SignalStudy& part) {
  PartPlan plan(context);
  const int64_t widest = *std::max_element(part.widths.begin(), part.widths.end());
  SignalsByArm measured;
  for (const std::string& arm : arm_names(context)) {
    if (arm != "post-ln" && arm != "pre-ln") continue;  // not covered by the theory
    ArmSignals& signals = measured[arm];
    for (const int64_t width : part.widths)
      signals.theory.push_back(planned_signal(plan, context, arm, width, "theory", part));
    signals.usual = planned_signal(plan, context, arm, widest, "xavier-normal", part);
  }
  plan.report = [&context, part, widest, measured] {
    PartResult result;
    if (measured.empty()) return result;
    result.figures.push_back(activation_figure(measured, first_stack(context), widest, part));
    judge_activations(context, part, measured, widest, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kSignal =
    add_part<SignalStudy>("signal", "activations in the theory's setting, compared with its bounds",
                          "Xiong et al. 2020, arXiv 2002.04745", {.place = 3, .plan = plan});

}  // namespace
}  // namespace plumb
