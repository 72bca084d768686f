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

/// For one scheme, width and initialization.
struct Measured {
  std::vector<std::vector<double>> squares;  // [layer][seed]: mean squared norm over width
  std::vector<double> last_gradient;         // [seed]: norm of W^{2,L}'s gradient
  double delta = 0;                          // the largest over layers and seeds, at ε = 0.1
};

Json to_json(const Measured& measured) {
  return {{"squares", measured.squares}, {"gradient", measured.last_gradient}, {"delta", measured.delta}};
}

void from_json(const Json& json, Measured& measured) {
  for (const Json& layer : json.at("squares")) measured.squares.push_back(numbers_of(layer));
  measured.last_gradient = numbers_of(json.at("gradient"));
  measured.delta = number_of(json.at("delta"));
}

/// The setting of the theory: one head, feed-forward of width d, W^Q = W^K = 0; or with Xavier W^Q and W^K.
ModelConfig theory_model(const StudyContext& context, const std::string& scheme, int64_t width,
                         const std::string& initialization, int64_t layers) {
  ModelConfig config = model_for(context, scheme, layers);
  config.d_model = config.feed_forward = width;
  config.heads = 1;
  config.initialization = initialization;
  return config;
}

/// The point of the first stack that the lemma is about. Post-LN: the sum before the second norm; Pre-LN: the stream.
ActivationPoint lemma_point(StackKind stack, const std::string& scheme, int64_t layer) {
  return {{stack, layer, SubLayerKind::feed_forward}, scheme == "post-ln" ? Point::sum : Point::stream};
}

Measured measure(StudyContext& context, const std::string& scheme, int64_t width, const std::string& initialization,
                 const SignalStudy& part) {
  const ModelConfig config = theory_model(context, scheme, width, initialization, part.layers);
  const Json settings = {{"data", context.data_settings},
                         {"model", settings_of(config)},
                         {"seeds", part.seeds},
                         {"pairs", part.pairs},
                         {"first_seed", context.config.study.seed}};
  const std::string name = fmt::format("signal-{}-{}-{}", scheme, initialization, width);
  return context.measurements.get(name, settings, [&] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    const std::string last = feed_forward_matrix({last_stack(context), part.layers - 1}, 2);
    Progress progress(fmt::format("signal, {}, width {}", display_name(scheme), width), part.seeds);
    Measured measured{std::vector<std::vector<double>>(static_cast<size_t>(part.layers)), {}};
    for (int64_t i = 0; i < part.seeds; ++i) {
      const std::unique_ptr<Model> model = initialized_model(context, config, i);
      const SignalProfile profile = measure_signal(*model, batches);
      for (int64_t layer = 0; layer < part.layers; ++layer) {
        const LayerPoint& point = profile.at(lemma_point(first_stack(context), scheme, layer));
        measured.squares[static_cast<size_t>(layer)].push_back(point.mean_square / static_cast<double>(width));
        measured.delta = std::max(measured.delta, point.delta_at_0_1);
      }
      measured.last_gradient.push_back(measure_gradients(*model, batches).norm(last));
      progress.update(i + 1);
    }
    return measured;
  });
}

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

PartResult measure(StudyContext& context, const SignalStudy& part) {
  PartResult result;
  const int64_t widest = *std::max_element(part.widths.begin(), part.widths.end());
  std::map<std::string, std::map<std::string, Measured>> measured;  // scheme → initialization, at the largest width
  Table bounds{"theorem1",
               "Theorem 1: the measured constant",
               "Gradient norm of the last layer's W₂ in the theory's setting, divided by the bound without its "
               "constant: d√ln d for Post-LN, "
               "d√(ln d / L) for Pre-LN. A bound that is tight in d would give the same constant in every row.",
               {"scheme", "d", "gradient norm", "bound", "constant"}};
  std::map<std::string, std::vector<double>> constants;
  for (const std::string& scheme : context.config.study.schemes) {
    if (scheme != "post-ln" && scheme != "pre-ln") continue;  // the theory covers these two
    for (const int64_t width : part.widths) {
      const Measured one = measure(context, scheme, width, "theory", part);
      const double norm = confidence_interval(one.last_gradient).mean;
      const double bound =
          scheme == "post-ln" ? theory::theorem1_post_ln(width) : theory::theorem1_pre_ln(width, part.layers);
      bounds.rows.push_back({scheme, width, norm, bound, norm / bound});
      constants[scheme].push_back(norm / bound);
      if (width == widest) measured[scheme]["theory"] = one;
    }
    measured[scheme]["xavier-normal"] = measure(context, scheme, widest, "xavier-normal", part);
  }
  if (measured.empty()) return result;
  result.figures.push_back(activation_figure(measured, first_stack(context), widest, part.layers));
  result.tables.push_back(bounds);

  if (measured.count("post-ln") != 0) {
    const Measured& post = measured["post-ln"]["theory"];
    double worst = 0;
    for (const std::vector<double>& values : post.squares)
      worst = std::max(worst, std::abs(confidence_interval(values).mean - 1.5) / 1.5);
    result.verdicts.push_back({"lemma2_post", "Post-LN: E‖x‖² before the second norm is 3d/2 in every layer",
                               "Xiong et al. 2020, Lemma 2", confirmed_if(worst < 0.1),
                               fmt::format("The largest deviation over the layers is {:.1f} %.", 100 * worst),
                               "activations"});
  }
  if (measured.count("pre-ln") != 0) {
    const Measured& pre = measured["pre-ln"]["theory"];
    int64_t inside = 0;
    for (size_t layer = 0; layer < pre.squares.size(); ++layer) {
      const Interval interval = confidence_interval(pre.squares[layer]);
      const auto [low, high] = theory::lemma2_pre_ln(static_cast<int64_t>(layer) + 1, widest);
      const auto d = static_cast<double>(widest);
      if (interval.high >= low / d && interval.low <= high / d) ++inside;
    }
    const double last = confidence_interval(pre.squares.back()).mean;
    result.verdicts.push_back({"lemma2_pre", "Pre-LN: (1 + l/2)·d ≤ E‖x‖² ≤ (1 + 3l/2)·d after layer l",
                               "Xiong et al. 2020, Lemma 2", confirmed_if(inside == part.layers),
                               fmt::format("{} of {} layers lie within the bounds; after layer {} E‖x‖²/d is {:.2f}.",
                                           inside, part.layers, part.layers, last),
                               "activations"});
  }
  const double delta = std::max_element(measured.begin(), measured.end(),
                                        [](const auto& a, const auto& b) {
                                          return a.second.at("theory").delta < b.second.at("theory").delta;
                                        })
                           ->second.at("theory")
                           .delta;
  result.verdicts.push_back(
      {"bounded", "The squared norms are (0.1, 0.125)-bounded", "Xiong et al. 2020, section 3.3",
       confirmed_if(delta <= 0.125),
       fmt::format("At d = {}, up to {:.1f} % of the tokens of a layer exceed the mean by more than 10 %.", widest,
                   100 * delta),
       "activations"});
  for (const auto& [scheme, values] : constants) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    result.verdicts.push_back(
        {"theorem1_" + scheme, fmt::format("{}: the bound of Theorem 1 is tight in d", display_name(scheme)),
         "criticism of Theorem 1: measure the constant", confirmed_if(*high / *low < 1.5),
         fmt::format("The ratio of measured norm to bound ranges from {:.3g} to {:.3g} for d = {} … {}.", *low, *high,
                     part.widths.front(), part.widths.back()),
         ""});
  }
  return result;
}

}  // namespace plumb
