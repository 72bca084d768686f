// Activations and gradients in the setting of the theory: Xiong et al. 2020, Lemma 2 and Theorem 1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "plumb/analysis/gradient.h"
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
  double gradient = 0;          // norm of W^{2,L}'s
  double delta = 0;             // the largest over the layers, at ε = 0.1
};

void describe(Fields& field, Signal& signal) {
  field("squares", signal.squares);
  field("gradient", signal.gradient);
  field("delta", signal.delta);
}

using Signals = Planned<std::vector<Signal>>;  // [seed]

/// [seed]
std::vector<double> squares_at(const std::vector<Signal>& signals, size_t layer) {
  return numbers_in(signals, [layer](const Signal& each) { return each.squares.at(layer); });
}

/// The measurements of one scheme, in the theory's initialization for each width, and in the usual one.
struct SchemeSignals {
  std::vector<Signals> theory;   // by width
  std::optional<Signals> usual;  // at the largest width

  /// At the largest width.
  [[nodiscard]] const std::vector<Signal>& widest(const std::vector<int64_t>& widths) const {
    return *theory[static_cast<size_t>(std::max_element(widths.begin(), widths.end()) - widths.begin())];
  }
};
using SignalsByScheme = std::map<std::string, SchemeSignals>;

/// The activation that the lemma is about. Post-LN: the sum before the second norm; Pre-LN: the stream.
ActivationPoint lemma_point(StackKind stack, const std::string& scheme, int64_t layer) {
  return {{stack, layer, SubLayerKind::feed_forward}, scheme == "post-ln" ? Point::sum : Point::stream};
}

Signals planned_signal(PartPlan& plan, StudyContext& context, const std::string& scheme, int64_t width,
                       const std::string& initialization, const SignalStudy& part) {
  return over_seeds(
      plan, context,
      {.name = fmt::format("signal-{}-{}-{}", scheme, initialization, width),
       .label = fmt::format("signal, {}, width {}", display_name(scheme), width),
       .model = theory_model(context, scheme, width, initialization, part.layers),
       .seeds = part.seeds,
       .pairs = part.pairs},
      [scheme, width, layers = part.layers, first = first_stack(context), last = last_stack(context)](
          Model& model, const std::vector<Batch>& batches) {
        const SignalProfile profile = measure_signal(model, batches);
        Signal signal;
        for (int64_t layer = 0; layer < layers; ++layer) {
          const LayerPoint& point = profile.at(lemma_point(first, scheme, layer));
          signal.squares.push_back(point.mean_square / static_cast<double>(width));
          signal.delta = std::max(signal.delta, point.delta_at_0_1);
        }
        signal.gradient = measure_gradients(model, batches).norm(feed_forward_matrix({last, layers - 1}, 2));
        return signal;
      });
}

bool covered_by_theory(const std::string& scheme) { return scheme == "post-ln" || scheme == "pre-ln"; }

Figure activation_figure(const SignalsByScheme& measured, StackKind stack, int64_t width, const SignalStudy& part) {
  Figure figure{"activations",
                "Activations by layer, compared with Lemma 2",
                fmt::format("Mean squared norm of the {}'s activations divided by d at initialization, d = {}: for "
                            "Post-LN the sum that enters each layer's second norm, for Pre-LN the stream after each "
                            "layer. Solid: the theory's setting (one head, W^Q = W^K = 0); dashed: Xavier W^Q, W^K "
                            "and W^O.",
                            to_string(stack), width),
                "line",
                {"layer"},
                {"E‖x‖² / d"}};
  const auto add = [&](const std::string& name, const std::string& scheme, const char* style,
                       const std::vector<Signal>& signals) {
    Series series{name, scheme};
    series.style = style;
    for (size_t layer = 0; layer < signals.front().squares.size(); ++layer)
      series.point(layer + 1, confidence_interval(squares_at(signals, layer)));
    figure.series.push_back(series);
  };
  for (const auto& [scheme, signals] : measured) {
    add(display_name(scheme), scheme, "solid", signals.widest(part.widths));
    add(display_name(scheme) + ", xavier-normal", scheme, "dashed", **signals.usual);
  }
  if (measured.count("post-ln") != 0) {
    Series theory{"Lemma 2, Post-LN: 3/2", "theory"};
    theory.style = "dashed";
    for (int64_t layer = 1; layer <= part.layers; ++layer)
      theory.point(layer, theory::lemma2_post_ln(width) / static_cast<double>(width));
    figure.series.push_back(theory);
  }
  if (measured.count("pre-ln") != 0) {
    Series lower{"Lemma 2, Pre-LN: 1 + l/2", "lower bound"};
    Series upper{"Lemma 2, Pre-LN: 1 + 3l/2", "upper bound"};
    lower.style = upper.style = "dashed";
    for (int64_t layer = 1; layer <= part.layers; ++layer) {
      const auto [low, high] = theory::lemma2_pre_ln(layer, width);
      lower.point(layer, low / static_cast<double>(width));
      upper.point(layer, high / static_cast<double>(width));
    }
    figure.series.push_back(lower);
    figure.series.push_back(upper);
  }
  return figure;
}

/// The constants of Theorem 1 by width, and verdicts on their growth.
void report_theorem(const StudyContext& context, const SignalStudy& part, const SignalsByScheme& measured,
                    int64_t widest, PartResult& result) {
  Table bounds{"theorem1",
               "Theorem 1: the measured constant",
               "Gradient norm of the last layer's W₂ in the theory's setting, divided by the bound without its "
               "constant: d√ln d for Post-LN, d√(ln d / L) for Pre-LN. A bound that is tight in d would give the same "
               "constant in every row.",
               {"scheme", "d", "gradient norm", "bound", "constant"}};
  for (const std::string& scheme : context.config.study.schemes) {
    if (measured.count(scheme) == 0) continue;
    std::vector<double> log_width;
    std::vector<std::vector<double>> log_constants(static_cast<size_t>(part.seeds));
    for (size_t i = 0; i < part.widths.size(); ++i) {
      const int64_t width = part.widths[i];
      const std::vector<double> gradients = numbers_in(*measured.at(scheme).theory[i], &Signal::gradient);
      const double norm = confidence_interval(gradients).mean;
      const double bound =
          scheme == "post-ln" ? theory::theorem1_post_ln(width) : theory::theorem1_pre_ln(width, part.layers);
      bounds.row(scheme, width, norm, bound, norm / bound);
      log_width.push_back(std::log(static_cast<double>(width)));
      for (size_t seed = 0; seed < gradients.size(); ++seed)
        log_constants[seed].push_back(std::log(gradients[seed] / bound));
    }
    if (part.widths.size() < 2) continue;
    std::vector<double> exponents;  // [seed]: p of constant ~ d^p
    for (const std::vector<double>& constants : log_constants)
      exponents.push_back(fit_line(log_width, constants).slope);
    result.verdicts.push_back(
        {"theorem1_" + scheme, fmt::format("{}: the bound of Theorem 1 is tight in d", display_name(scheme)),
         "a question that the theorem leaves open",
         setting_of(context, theory_model(context, scheme, widest, "theory", part.layers)),
         "exponent p of measured norm / bound as d^p", judge(exponents, Region::around(0, 0.1)),
         fmt::format("Widths {} to {}; the table has the norms and bounds.", part.widths.front(), part.widths.back()),
         ""});
  }
  result.tables.push_back(bounds);
}

/// What Lemma 2 says of E‖x‖²/d after a layer, from 1.
struct LemmaClaim {
  const char* scheme;
  const char* id;
  const char* claim;
  const char* quantity;
  Region (*region)(int64_t layer, int64_t width);
};
constexpr LemmaClaim kLemmaClaims[] = {
    {"post-ln", "lemma2_post", "Post-LN: E‖x‖² before the second norm is 3d/2 in every layer",
     "E‖x‖²/d before the second norm",
     [](int64_t, int64_t) {
       constexpr double kMargin = 0.1;  // relative
       return Region::around(1.5, 1.5 * kMargin);
     }},
    {"pre-ln", "lemma2_pre", "Pre-LN: (1 + l/2)·d ≤ E‖x‖² ≤ (1 + 3l/2)·d after layer l",
     "E‖x‖²/d after a layer, between its bounds",
     [](int64_t layer, int64_t width) {
       const auto [low, high] = theory::lemma2_pre_ln(layer, width);
       return Region{low / static_cast<double>(width), high / static_cast<double>(width)};
     }},
};

void judge_activations(const StudyContext& context, const SignalStudy& part, const SignalsByScheme& measured,
                       int64_t widest, PartResult& result) {
  const auto setting = [&](const std::string& scheme) {
    return setting_of(context, theory_model(context, scheme, widest, "theory", part.layers));
  };
  for (const LemmaClaim& claim : kLemmaClaims) {
    const auto found = measured.find(claim.scheme);
    if (found == measured.end()) continue;
    const std::vector<Signal>& signals = found->second.widest(part.widths);
    std::vector<Condition> layers;
    for (int64_t layer = 1; layer <= part.layers; ++layer)
      layers.push_back({squares_at(signals, static_cast<size_t>(layer - 1)), claim.region(layer, widest)});
    result.verdicts.push_back(
        {claim.id, claim.claim, "Xiong et al. 2020, Lemma 2", setting(claim.scheme),
         fmt::format("{}, in the worst of {} layers", claim.quantity, layers.size()), judge_each(layers),
         claim.scheme == std::string("pre-ln") ? fmt::format("After layer {} E‖x‖²/d is {:.2f}.", part.layers,
                                                             confidence_interval(layers.back().values).mean)
                                               : "",
         "activations"});
  }
  for (const auto& [scheme, signals] : measured) {
    // The share of tokens that exceed the mean by 10% decreases with width; the claim is about d = 512.
    constexpr int64_t kClaimed = 512;
    result.verdicts.push_back(
        {fmt::format("bounded_{}", scheme),
         fmt::format("{}: the squared norms are (0.1, 0.125)-bounded", display_name(scheme)),
         "Xiong et al. 2020, section 3.3", setting(scheme),
         "largest share of a layer's tokens whose ‖x‖² exceeds the mean by more than 10%",
         not_testable_because(judge(numbers_in(signals.widest(part.widths), &Signal::delta), Region::below(0.125)),
                              widest < kClaimed
                                  ? fmt::format("the share depends on the width; the claim is about d = {}", kClaimed)
                                  : ""),
         "", "activations"});
  }
}

PartPlan plan(StudyContext& context, const SignalStudy& part) {
  PartPlan plan(context);
  const int64_t widest = *std::max_element(part.widths.begin(), part.widths.end());
  SignalsByScheme measured;
  for (const std::string& scheme : context.config.study.schemes) {
    if (!covered_by_theory(scheme)) continue;
    SchemeSignals& signals = measured[scheme];
    for (const int64_t width : part.widths)
      signals.theory.push_back(planned_signal(plan, context, scheme, width, "theory", part));
    signals.usual = planned_signal(plan, context, scheme, widest, "xavier-normal", part);
  }
  plan.report = [&context, part, widest, measured] {
    PartResult result;
    if (measured.empty()) return result;
    result.figures.push_back(activation_figure(measured, first_stack(context), widest, part));
    judge_activations(context, part, measured, widest, result);
    report_theorem(context, part, measured, widest, result);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kSignal =
    add_part<SignalStudy>("signal", "activations and gradients in the theory's setting, compared with its bounds",
                          "Xiong et al. 2020, arXiv 2002.04745", {.place = 3, .plan = plan});

}  // namespace
}  // namespace plumb
