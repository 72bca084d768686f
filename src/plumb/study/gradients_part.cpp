// Gradients by layer at initialization: Xiong et al. 2020, Figure 3 (a, b).
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/statistics.h"
#include "plumb/analysis/theory.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

/// Norms of the mean gradient by parameter, one value per seed, in the order of the model's parameters.
struct Norms {
  std::vector<std::pair<std::string, std::vector<double>>> by_parameter;

  /// For the feed-forward matrix W1 or W2 of a layer, from 0. Throws Error if the model has none.
  [[nodiscard]] const std::vector<double>& at(StackKind stack, int64_t layer, int matrix) const {
    const std::string name = feed_forward_matrix({stack, layer}, matrix);
    for (const auto& [parameter, values] : by_parameter) {
      if (parameter == name) return values;
    }
    throw Error(fmt::format("the gradient of '{}' was not measured", name));
  }
};

Json to_json(const Norms& norms) {
  Json json = Json::object();
  for (const auto& [parameter, values] : norms.by_parameter) json[parameter] = values;
  return json;
}

void from_json(const Json& json, Norms& norms) {
  for (const auto& [parameter, values] : json.items()) norms.by_parameter.emplace_back(parameter, numbers_of(values));
}

Norms measure(StudyContext& context, const std::string& scheme, const GradientStudy& part) {
  const ModelConfig config = model_for(context, scheme, part.layers);
  const Json settings = {{"data", context.data_settings},
                         {"model", settings_of(config)},
                         {"seeds", part.seeds},
                         {"pairs", part.pairs},
                         {"first_seed", context.config.study.seed}};
  return context.measurements.get("gradients-" + file_name(scheme), settings, [&] {
    const std::vector<Batch> batches = measured_batches(context, part.pairs);
    Progress progress("gradients, " + display_name(scheme), part.seeds);
    Norms norms;
    for (int64_t i = 0; i < part.seeds; ++i) {
      const GradientProfile profile = measure_gradients(*initialized_model(context, config, i), batches);
      norms.by_parameter.resize(profile.norm_by_parameter.size());
      for (size_t k = 0; k < profile.norm_by_parameter.size(); ++k) {
        const auto& [parameter, norm] = profile.norm_by_parameter[k];
        norms.by_parameter[k].first = parameter;
        norms.by_parameter[k].second.push_back(norm);
      }
      progress.update(i + 1);
    }
    return norms;
  });
}

/// Fits a line to log(norm) as a function of the layer: the growth from layer to layer.
LineFit fit_growth(const Norms& norms, StackKind stack, int64_t layers) {
  std::vector<double> x;
  std::vector<double> y;
  for (int64_t layer = 0; layer < layers; ++layer) {
    x.push_back(static_cast<double>(layer));
    y.push_back(std::log(confidence_interval(norms.at(stack, layer, 2)).mean));
  }
  return fit_line(x, y);
}

Figure figure_of(StackKind stack, const std::map<std::string, Norms>& by_scheme, int64_t layers) {
  Figure figure;
  figure.id = "gradient_by_layer_" + to_string(stack);
  figure.title = fmt::format("Gradient norm by layer, {}", to_string(stack));
  figure.caption = fmt::format(
      "Frobenius norm of the mean gradient of the feed-forward matrices of each {} layer at initialization; mean over "
      "seeds with its "
      "95 % interval. The theory line decreases by √(2/3) per layer from the last layer.",
      to_string(stack));
  figure.kind = "line";
  figure.x = {"layer"};
  figure.y = {"gradient norm", true};
  for (const auto& [scheme, norms] : by_scheme) {
    for (const int matrix : {2, 1}) {
      Series series{fmt::format("{} W{}", display_name(scheme), matrix == 1 ? "₁" : "₂"), scheme};
      series.style = matrix == 2 ? "solid" : "dashed";
      for (int64_t layer = 0; layer < layers; ++layer) {
        const Interval interval = positive_interval(norms.at(stack, layer, matrix));
        series.point(layer + 1, interval.mean, interval.low, interval.high);
      }
      figure.series.push_back(series);
    }
    if (scheme != "post-ln") continue;
    Series theory{"theory, Post-LN", "theory"};
    theory.style = "dashed";
    const double last = confidence_interval(norms.at(stack, layers - 1, 2)).mean;
    for (int64_t layer = 1; layer <= layers; ++layer)
      theory.point(layer, last * theory::post_ln_layer_factor(layers, layer));
    figure.series.push_back(theory);
  }
  return figure;
}

double mean_norm(const Norms& norms, StackKind stack, int64_t layer) {
  return confidence_interval(norms.at(stack, layer, 2)).mean;
}

double ratio_last_to_first(const Norms& norms, StackKind stack, int64_t layers) {
  return mean_norm(norms, stack, layers - 1) / mean_norm(norms, stack, 0);
}

}  // namespace

PartResult measure(StudyContext& context, const GradientStudy& part) {
  std::map<std::string, Norms> by_scheme;
  for (const std::string& scheme : context.config.study.schemes) by_scheme[scheme] = measure(context, scheme, part);

  PartResult result;
  const std::vector<StackKind> stacks = stacks_of(context);
  const StackKind last = stacks.back();
  for (auto stack = stacks.rbegin(); stack != stacks.rend(); ++stack)
    result.figures.push_back(figure_of(*stack, by_scheme, part.layers));
  Table slopes{"gradient_slopes",
               "Growth of the gradient from layer to layer",
               "Factor by which the norm of W₂'s gradient changes from one layer to the next, fitted over the layers; "
               "theory for Post-LN: "
               "√(3/2) = 1.225.",
               {"scheme", "stack", "factor per layer", "± (standard error)", "last layer / first"}};
  for (const auto& [scheme, norms] : by_scheme) {
    for (const StackKind stack : stacks) {
      const LineFit fit = fit_growth(norms, stack, part.layers);
      slopes.rows.push_back({scheme, to_string(stack), std::exp(fit.slope), std::exp(fit.slope) * fit.slope_error,
                             ratio_last_to_first(norms, stack, part.layers)});
    }
  }
  result.tables.push_back(slopes);

  const std::string id = "gradient_by_layer_" + to_string(last);
  if (by_scheme.count("post-ln") != 0) {
    const Norms& norms = by_scheme["post-ln"];
    const double ratio = ratio_last_to_first(norms, last, part.layers);
    result.verdicts.push_back({"post_ln_grows", "Post-LN: at initialization the gradient grows toward the output",
                               "Xiong et al. 2020, Figure 3a", confirmed_if(ratio > 1.5),
                               fmt::format("W₂ of {} layer {} has {:.2f} times the gradient norm of layer 1.",
                                           to_string(last), part.layers, ratio),
                               id});
    const LineFit fit = fit_growth(norms, last, part.layers);
    const double theory = -theory::log_slope();
    const bool agrees = std::abs(fit.slope - std::abs(theory)) <= 2 * fit.slope_error + 0.05;
    result.verdicts.push_back(
        {"post_ln_slope", "Post-LN: the gradient of layer l carries the factor (2/3)^((L−l)/2)",
         "Xiong et al. 2020, appendix", confirmed_if(agrees),
         fmt::format("Fitted over the {}, the norm grows by {:.3f} ± {:.3f} per layer; theory: {:.3f}.",
                     to_string(last), std::exp(fit.slope), std::exp(fit.slope) * fit.slope_error,
                     std::exp(std::abs(theory))),
         id});
    result.summary.push_back(
        fmt::format("At initialization, the Post-LN gradient of the last {} layer is {:.1f} times that of the first.",
                    to_string(last), ratio));
  }
  if (by_scheme.count("pre-ln") != 0) {
    const double ratio = ratio_last_to_first(by_scheme["pre-ln"], last, part.layers);
    const bool flat = ratio > 1 / 1.5 && ratio < 1.5;
    result.verdicts.push_back({"pre_ln_flat", "Pre-LN: the gradient is about the same in every layer",
                               "Xiong et al. 2020, Figure 3a", confirmed_if(flat),
                               fmt::format("W₂ of {} layer {} has {:.2f} times the gradient norm of layer 1.",
                                           to_string(last), part.layers, ratio),
                               id});
  }
  if (by_scheme.count("residual-dual") != 0 && by_scheme.count("pre-ln") != 0) {
    const double dual = mean_norm(by_scheme["residual-dual"], last, 0);
    const double pre = mean_norm(by_scheme["pre-ln"], last, 0);
    std::string evidence = fmt::format("W₂ of {} layer 1 has a gradient norm of {:.3g}, compared with {:.3g} in Pre-LN",
                                       to_string(last), dual, pre);
    evidence += by_scheme.count("post-ln") == 0
                    ? "."
                    : fmt::format(" and {:.3g} in Post-LN.", mean_norm(by_scheme["post-ln"], last, 0));
    result.verdicts.push_back(
        {"residual_dual_bounded", "ResiDual: the gradient of early layers vanishes no more than in Pre-LN",
         "Xie et al. 2023, arXiv 2304.14802, section 3", confirmed_if(dual > pre / 1.5), evidence, id});
  }
  for (const auto& [scheme, norms] : by_scheme) {
    const std::map<std::string, std::vector<double>> sorted(norms.by_parameter.begin(), norms.by_parameter.end());
    result.measurements[scheme] = sorted;
  }
  return result;
}

}  // namespace plumb
