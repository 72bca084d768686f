// Activations and gradients in the setting of the theory: Xiong et al. 2020, Lemma 2 and Theorem 1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

/// Measurements for one scheme, width and initialization.
struct Measured {
  std::vector<std::vector<double>> squares;  // [layer][seed]: mean squared norm over width
  std::vector<double> last_gradient;         // [seed]: norm of W^{2,L}'s gradient
  std::vector<double> delta;                 // [seed]: the largest over the layers, at ε = 0.1
};

Json to_json(const Measured& measured) {
  return {{"squares", measured.squares}, {"gradient", measured.last_gradient}, {"delta", measured.delta}};
}

void from_json(const Json& json, Measured& measured) {
  for (const Json& layer : json.at("squares")) measured.squares.push_back(numbers_of(layer));
  measured.last_gradient = numbers_of(json.at("gradient"));
  measured.delta = numbers_of(json.at("delta"));
}

/// The activation that the lemma is about. Post-LN: the sum before the second norm; Pre-LN: the stream.
ActivationPoint lemma_point(StackKind stack, const std::string& scheme, int64_t layer) {
  return {{stack, layer, SubLayerKind::feed_forward}, scheme == "post-ln" ? Point::sum : Point::stream};
}

MeasurementRequest signal_request(StudyContext& context, const std::string& scheme, int64_t width,
                                  const std::string& initialization, const SignalStudy& part) {
  const ModelConfig config = theory_model(context, scheme, width, initialization, part.layers);
  MeasurementRequest request;
  request.name = fmt::format("signal-{}-{}-{}", scheme, initialization, width);
  request.label = fmt::format("signal, {}, width {}", display_name(scheme), width);
  request.settings = {{"data", context.batch_settings},
                      {"model", settings_of(config)},
                      {"seeds", part.seeds},
                      {"pairs", part.pairs},
                      {"first_seed", context.config.study.seed}};
  request.work = work_of(config, static_cast<double>(part.seeds * part.pairs * 20));
  request.measure = [&context, config, scheme, width, part, label = request.label] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    const std::string last = feed_forward_matrix({last_stack(context), part.layers - 1}, 2);
    Progress progress(label, part.seeds);
    Measured measured{std::vector<std::vector<double>>(static_cast<size_t>(part.layers)), {}, {}};
    for (int64_t i = 0; i < part.seeds; ++i) {
      const std::unique_ptr<Model> model = initialized_model(context, config, i);
      const SignalProfile profile = measure_signal(*model, batches);
      double delta = 0;
      for (int64_t layer = 0; layer < part.layers; ++layer) {
        const LayerPoint& point = profile.at(lemma_point(first_stack(context), scheme, layer));
        measured.squares[static_cast<size_t>(layer)].push_back(point.mean_square / static_cast<double>(width));
        delta = std::max(delta, point.delta_at_0_1);
      }
      measured.delta.push_back(delta);
      measured.last_gradient.push_back(measure_gradients(*model, batches).norm(last));
      progress.update(i + 1);
    }
    return to_json(measured);
  };
  return request;
}

Measured signal_of(StudyContext& context, const std::string& scheme, int64_t width, const std::string& initialization,
                   const SignalStudy& part) {
  return context.measurements.get(signal_request(context, scheme, width, initialization, part)).get<Measured>();
}

bool covered_by_theory(const std::string& scheme) { return scheme == "post-ln" || scheme == "pre-ln"; }

Figure activation_figure(const std::map<std::string, std::map<std::string, Measured>>& measured, StackKind stack,
                         int64_t width, int64_t layers) {
  Figure figure;
  figure.id = "activations";
  figure.title = "Activations by layer, compared with Lemma 2";
  figure.caption = fmt::format(
      "Mean squared norm of the {}'s activations divided by d at initialization, d = {}: for Post-LN the sum that "
      "enters each layer's second "
      "norm, for Pre-LN the stream after each layer. Solid: the theory's setting (one head, W^Q = W^K = 0); dashed: "
      "Xavier W^Q, W^K and W^O.",
      to_string(stack), width);
  figure.kind = "line";
  figure.x = {"layer"};
  figure.y = {"E‖x‖² / d"};
  for (const auto& [scheme, by_initialization] : measured) {
    for (const auto& [initialization, one] : by_initialization) {
      Series series{display_name(scheme) + (initialization == "theory" ? "" : ", " + initialization), scheme};
      series.style = initialization == "theory" ? "solid" : "dashed";
      for (size_t layer = 0; layer < one.squares.size(); ++layer) {
        const Interval interval = confidence_interval(one.squares[layer]);
        series.point(layer + 1, interval.mean, interval.low, interval.high);
      }
      figure.series.push_back(series);
    }
  }
  if (measured.count("post-ln") != 0) {
    Series theory{"Lemma 2, Post-LN: 3/2", "theory"};
    theory.style = "dashed";
    for (int64_t layer = 1; layer <= layers; ++layer)
      theory.point(layer, theory::lemma2_post_ln(width) / static_cast<double>(width));
    figure.series.push_back(theory);
  }
  if (measured.count("pre-ln") != 0) {
    Series lower{"Lemma 2, Pre-LN: 1 + l/2", "lower bound"};
    Series upper{"Lemma 2, Pre-LN: 1 + 3l/2", "upper bound"};
    lower.style = upper.style = "dashed";
    for (int64_t layer = 1; layer <= layers; ++layer) {
      const auto [low, high] = theory::lemma2_pre_ln(layer, width);
      lower.point(layer, low / static_cast<double>(width));
      upper.point(layer, high / static_cast<double>(width));
    }
    figure.series.push_back(lower);
    figure.series.push_back(upper);
  }
  return figure;
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const SignalStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes) {
    if (!covered_by_theory(scheme)) continue;
    for (const int64_t width : part.widths) list.push_back(signal_request(context, scheme, width, "theory", part));
    list.push_back(signal_request(context, scheme, *std::max_element(part.widths.begin(), part.widths.end()),
                                  "xavier-normal", part));
  }
  return list;
}

PartResult measure(StudyContext& context, const SignalStudy& part) {
  PartResult result;
  const int64_t widest = *std::max_element(part.widths.begin(), part.widths.end());
  std::map<std::string, std::map<std::string, Measured>> measured;  // scheme → initialization, at the largest width
  Table bounds{"theorem1",
               "Theorem 1: the measured constant",
               "Gradient norm of the last layer's W₂ in the theory's setting, divided by the bound without its "
               "constant: d√ln d for Post-LN, d√(ln d / L) for Pre-LN. A bound that is tight in d would give the same "
               "constant in every row.",
               {"scheme", "d", "gradient norm", "bound", "constant"}};
  std::map<std::string, std::vector<double>> exponents;  // [seed]: p of constant ~ d^p
  for (const std::string& scheme : context.config.study.schemes) {
    if (!covered_by_theory(scheme)) continue;
    std::vector<double> log_width;
    std::vector<std::vector<double>> log_constants(static_cast<size_t>(part.seeds));
    for (const int64_t width : part.widths) {
      const Measured one = signal_of(context, scheme, width, "theory", part);
      const double norm = confidence_interval(one.last_gradient).mean;
      const double bound =
          scheme == "post-ln" ? theory::theorem1_post_ln(width) : theory::theorem1_pre_ln(width, part.layers);
      bounds.rows.push_back({scheme, width, norm, bound, norm / bound});
      log_width.push_back(std::log(static_cast<double>(width)));
      for (size_t seed = 0; seed < one.last_gradient.size(); ++seed)
        log_constants[seed].push_back(std::log(one.last_gradient[seed] / bound));
      if (width == widest) measured[scheme]["theory"] = one;
    }
    if (part.widths.size() > 1) {
      for (const std::vector<double>& constants : log_constants)
        exponents[scheme].push_back(fit_line(log_width, constants).slope);
    }
    measured[scheme]["xavier-normal"] = signal_of(context, scheme, widest, "xavier-normal", part);
  }
  if (measured.empty()) return result;
  result.figures.push_back(activation_figure(measured, first_stack(context), widest, part.layers));
  result.tables.push_back(bounds);

  const auto setting = [&](const std::string& scheme, int64_t width) {
    return setting_of(context, theory_model(context, scheme, width, "theory", part.layers));
  };
  constexpr double kLemmaMargin = 0.1;  // relative
  if (measured.count("post-ln") != 0) {
    std::vector<Condition> layers;
    for (const std::vector<double>& squares : measured["post-ln"]["theory"].squares)
      layers.push_back({squares, Region::around(1.5, 1.5 * kLemmaMargin)});
    result.verdicts.push_back({"lemma2_post", "Post-LN: E‖x‖² before the second norm is 3d/2 in every layer",
                               "Xiong et al. 2020, Lemma 2", setting("post-ln", widest),
                               fmt::format("E‖x‖²/d before the second norm, in the worst of {} layers", layers.size()),
                               judge_each(layers), "", "activations"});
  }
  if (measured.count("pre-ln") != 0) {
    const Measured& pre = measured["pre-ln"]["theory"];
    std::vector<Condition> layers;
    for (size_t layer = 0; layer < pre.squares.size(); ++layer) {
      const auto [low, high] = theory::lemma2_pre_ln(static_cast<int64_t>(layer) + 1, widest);
      layers.push_back({pre.squares[layer], {low / static_cast<double>(widest), high / static_cast<double>(widest)}});
    }
    result.verdicts.push_back(
        {"lemma2_pre", "Pre-LN: (1 + l/2)·d ≤ E‖x‖² ≤ (1 + 3l/2)·d after layer l", "Xiong et al. 2020, Lemma 2",
         setting("pre-ln", widest),
         fmt::format("E‖x‖²/d after a layer, between its bounds, in the worst of {} layers", layers.size()),
         judge_each(layers),
         fmt::format("After layer {} E‖x‖²/d is {:.2f}.", part.layers, confidence_interval(pre.squares.back()).mean),
         "activations"});
  }
  for (const auto& [scheme, by_initialization] : measured) {
    // The share of tokens that exceed the mean by 10% decreases with width; the claim is about d = 512.
    constexpr int64_t kClaimed = 512;
    result.verdicts.push_back(
        {fmt::format("bounded_{}", scheme),
         fmt::format("{}: the squared norms are (0.1, 0.125)-bounded", display_name(scheme)),
         "Xiong et al. 2020, section 3.3", setting(scheme, widest),
         "largest share of a layer's tokens whose ‖x‖² exceeds the mean by more than 10%",
         not_testable_because(judge(by_initialization.at("theory").delta, Region::below(0.125)),
                              widest < kClaimed
                                  ? fmt::format("the share depends on the width; the claim is about d = {}", kClaimed)
                                  : ""),
         "", "activations"});
  }
  for (const auto& [scheme, values] : exponents) {
    result.verdicts.push_back(
        {"theorem1_" + scheme, fmt::format("{}: the bound of Theorem 1 is tight in d", display_name(scheme)),
         "a question that the theorem leaves open", setting(scheme, widest),
         "exponent p of measured norm / bound as d^p", judge(values, Region::around(0, 0.1)),
         fmt::format("Widths {} to {}; the table has the norms and bounds.", part.widths.front(), part.widths.back()),
         ""});
  }
  return result;
}

}  // namespace plumb
