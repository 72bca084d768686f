// Activations in the setting of the theory: Xiong et al. 2020, Lemma 2.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/report/display_name.h"
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

/// What claims can be about, by seed.
void add_quantities(PartPlan& plan, const StudyContext& context, const SignalStudy& part, const SignalsByArm& measured,
                    int64_t widest) {
  using Values = std::function<std::vector<double>(const std::vector<Signal>&)>;
  const auto add = [&](const std::string& name, const std::string& meaning, const std::string& arm,
                       const Values& values) -> Quantity& {
    Quantity& added = plan.quantity(
        name, meaning, Scale::linear, arm,
        [values, signals = measured.at(arm), widths = part.widths] { return values(signals.widest(widths)); });
    added.in_comparison_table = false;
    added.figure = "activations";
    added.setting = [&context, widest, layers = part.layers](const std::string& of) {
      return setting_of(context, theory_model(context, of, widest, "theory", layers));
    };
    return added;
  };
  const auto d = static_cast<double>(widest);
  for (const auto& [arm, all] : measured) {
    const bool post_ln = arm == "post-ln";
    for (int64_t layer = 1; layer <= part.layers; ++layer) {
      const std::pair<double, double> bounds = theory::lemma2_pre_ln(layer, widest);
      const double low = post_ln ? 0 : bounds.first / d, range = post_ln ? 1 : (bounds.second - bounds.first) / d;
      Quantity& added =
          add(fmt::format("{}_layer{}", post_ln ? "squared_norm" : "squared_norm_in_bounds", layer),
              post_ln ? fmt::format("E‖x‖²/d before the second norm of layer {}", layer)
                      : fmt::format("place of E‖x‖²/d after layer {} between its bounds, which are 0 and 1", layer),
              arm, [layer, low, range](const std::vector<Signal>& signals) {
                std::vector<double> squares = squares_at(signals, static_cast<size_t>(layer - 1));
                for (double& square : squares) square = (square - low) / range;
                return squares;
              });
      added.evidence = [measured, part](const std::string& of) {
        const std::vector<Signal>& signals = measured.at(of).widest(part.widths);
        return fmt::format("In layer {} E‖x‖²/d is {:.2f}.", part.layers,
                           confidence_interval(squares_at(signals, static_cast<size_t>(part.layers - 1))).mean);
      };
    }
    add("mean_square", fmt::format("mean square of an activation in layer {}, in the theory's setting", part.layers),
        arm,
        [last = static_cast<size_t>(part.layers - 1)](const std::vector<Signal>& signals) {
          return squares_at(signals, last);
        })
        .telling = {fmt::format("mean square of an activation in layer {}, in the theory's setting", part.layers)};
    Quantity& beyond =
        add("share_beyond_mean", "largest share of a layer's tokens whose ‖x‖² exceeds the mean by more than 10%", arm,
            [](const std::vector<Signal>& signals) { return numbers_in(signals, &Signal::delta); });
    // It decreases with width.
    if (widest < 512) beyond.untestable = [] { return "the share depends on the width; the claim is about d = 512"; };
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
  add_quantities(plan, context, part, measured, widest);
  plan.report = [&context, part, widest, measured] {
    PartResult result;
    if (measured.empty()) return result;
    result.figures.push_back(activation_figure(measured, first_stack(context), widest, part));
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kSignal =
    add_part<SignalStudy>("signal", "activations in the theory's setting, compared with its bounds",
                          "Xiong et al. 2020, arXiv 2002.04745", {.order = 3, .plan = plan});

}  // namespace
}  // namespace plumb
