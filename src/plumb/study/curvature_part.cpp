// The curvature at initialization over seeds, and how much of it is the Gauss–Newton part.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/initialization_json.h"
#include "plumb/base/text.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

using Splits = std::vector<CurvatureSplit>;  // [seed]
using SplitsByScheme = std::map<std::string, Splits>;

struct SplitMatrix {
  const char* name;
  Extremes SplitExtremes::*extremes;
  CurvatureSplitReport::Matrix CurvatureSplitReport::Split::*report;
};
constexpr SplitMatrix kSplitMatrices[] = {
    {"Hessian", &SplitExtremes::hessian, &CurvatureSplitReport::Split::hessian},
    {"Gauss–Newton part", &SplitExtremes::gauss_newton, &CurvatureSplitReport::Split::gauss_newton},
    {"rest", &SplitExtremes::rest, &CurvatureSplitReport::Split::rest},
};

Figure curvature_figure(const std::map<std::string, CurvatureSplitReport>& by_scheme, const CurvatureStudy& part,
                        const std::string& layers) {
  Figure figure;
  figure.id = "curvature_over_seeds";
  figure.title = "Largest curvature at initialization: Hessian, Gauss–Newton part and rest";
  figure.caption = fmt::format(
      "The largest eigenvalue of the Hessian H = G + R, of its Gauss–Newton part G and of the rest R, after {} Lanczos "
      "steps; mean over {} seeds of the initialization with its 95% interval. {}, {} examples.",
      part.steps, part.seeds, layers, part.pairs);
  figure.kind = "bar";
  figure.x = {""};
  figure.y = {"λ_max"};
  for (const auto& [scheme, report] : by_scheme) {
    Series bars{display_name(scheme), scheme};
    for (const SplitMatrix& matrix : kSplitMatrices) {
      const Interval& max = (report.whole.*matrix.report).max.over_seeds;
      bars.point(matrix.name, max.mean, max.low, max.high);
    }
    figure.series.push_back(bars);
  }
  return figure;
}

/// λ_max of the layers' blocks of the Hessian and of its Gauss–Newton part.
Figure block_curvature_figure(const std::map<std::string, CurvatureSplitReport>& by_scheme, StackKind stack,
                              const CurvatureStudy& part) {
  Figure figure;
  figure.id = "curvature_by_layer_" + to_string(stack);
  figure.title = fmt::format("Largest curvature within a layer at initialization, {}", to_string(stack));
  figure.caption = fmt::format(
      "The largest eigenvalue of each layer's diagonal block, with the other layers held fixed. Solid: Hessian; "
      "dashed: "
      "its Gauss–Newton part. Mean over {} seeds with its 95% interval.",
      part.seeds);
  figure.kind = "line";
  figure.x = {"layer"};
  figure.y = {"λ_max of the block", true};
  for (const auto& [scheme, report] : by_scheme) {
    Series hessian{display_name(scheme), scheme};
    Series newton{display_name(scheme) + ", Gauss–Newton part", scheme};
    newton.style = "dashed";
    for (const CurvatureSplitReport::Layer& layer : report.layers) {
      if (layer.id.stack != stack) continue;
      const auto add = [&](Series& series, const Interval& max) {
        series.point(layer.id.number(), max.mean, std::max(max.low, 1e-3 * max.mean), max.high);  // a logarithmic axis
      };
      add(hessian, layer.split.hessian.max.over_seeds);
      add(newton, layer.split.gauss_newton.max.over_seeds);
    }
    figure.series.push_back(hessian);
    figure.series.push_back(newton);
  }
  return figure;
}

Table curvature_table(const std::map<std::string, CurvatureSplitReport>& by_scheme) {
  Table table{"curvature_split",
              "Curvature at initialization over seeds",
              "Extreme eigenvalues of the Hessian H = G + R, of the Gauss–Newton part G = Jᵀ(∂²ℓ/∂z²)J and of the rest "
              "R: mean over the seeds with its 95% interval, and the largest Ritz residual of a seed. Whole model, or "
              "a layer's diagonal block.",
              {"scheme", "block", "matrix", "λ_max", "low", "high", "residual", "λ_min", "low", "high", "residual"}};
  const auto add_rows = [&](const std::string& scheme, const std::string& block,
                            const CurvatureSplitReport::Split& split) {
    for (const SplitMatrix& matrix : kSplitMatrices) {
      const auto& [max, min] = split.*matrix.report;
      table.rows.push_back(
          {scheme, block, matrix.name, finite_or_null(max.over_seeds.mean), finite_or_null(max.over_seeds.low),
           finite_or_null(max.over_seeds.high), finite_or_null(max.error), finite_or_null(min.over_seeds.mean),
           finite_or_null(min.over_seeds.low), finite_or_null(min.over_seeds.high), finite_or_null(min.error)});
    }
  };
  for (const auto& [scheme, report] : by_scheme) {
    add_rows(scheme, "all parameters", report.whole);
    for (const CurvatureSplitReport::Layer& layer : report.layers) add_rows(scheme, to_string(layer.id), layer.split);
  }
  return table;
}

/// The ratio of the largest curvatures of two schemes: the geometric mean over seeds.
std::string curvature_ratio(const SplitsByScheme& by_scheme, const std::string& scheme, const std::string& base) {
  std::vector<double> ratios;
  for (size_t i = 0; i < by_scheme.at(scheme).size(); ++i) {
    ratios.push_back(by_scheme.at(scheme)[i].whole.hessian.max.value / by_scheme.at(base)[i].whole.hessian.max.value);
  }
  const Interval ratio = geometric_interval(ratios);
  const std::string pair = fmt::format("{} over {}", display_name(scheme), display_name(base));
  if (!std::isfinite(ratio.low)) return fmt::format("{:.3g} ({}, one seed)", ratio.mean, pair);
  return fmt::format("{:.3g} ({:.3g} to {:.3g}; {})", ratio.mean, ratio.low, ratio.high, pair);
}

MeasurementRequest curvature_request(StudyContext& context, const std::string& scheme, const CurvatureStudy& part) {
  const Json settings = {{"pairs", part.pairs},
                         {"steps", part.steps},
                         {"layer_steps", part.layer_steps},
                         {"batch_tokens", part.batch_tokens}};
  CurvatureSplitOptions options;
  options.steps = part.steps;
  options.layer_steps = part.layer_steps;
  options.seed = static_cast<uint64_t>(context.config.study.seed);
  options.graph_memory = static_cast<int64_t>(part.graph_memory_gib * 1073741824.0);
  return over_seeds(context, "curvature-" + file_name(scheme), "curvature, " + display_name(scheme),
                    model_for(context, scheme, part.layers), part.seeds, settings,
                    static_cast<double>(part.pairs * 40 * (3 * part.steps + 6 * part.layer_steps)),
                    [&context, part, options](Model& model) {
                      return measure_curvature_split(model, measured_batches(context, part.pairs, part.batch_tokens),
                                                     options);
                    });
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const CurvatureStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes)
    list.push_back(curvature_request(context, scheme, part));
  return list;
}

PartResult measure(StudyContext& context, const CurvatureStudy& part) {
  SplitsByScheme by_scheme;
  std::map<std::string, CurvatureSplitReport> reports;
  for (const std::string& scheme : context.config.study.schemes) {
    by_scheme[scheme] = results_over_seeds<CurvatureSplit>(context, curvature_request(context, scheme, part));
    reports[scheme] = summarize(by_scheme[scheme]);
  }
  PartResult result;
  result.figures.push_back(curvature_figure(
      reports, part, layers_in_words(model_for(context, context.config.study.schemes.front(), part.layers))));
  if (part.layer_steps > 0) {
    for (const StackKind stack : stacks_of(context))
      result.figures.push_back(block_curvature_figure(reports, stack, part));
  }
  result.tables.push_back(curvature_table(reports));
  const std::string& base = context.config.study.schemes.back();
  std::vector<std::string> ratios;
  for (const std::string& scheme : context.config.study.schemes) {
    if (scheme != base) ratios.push_back(curvature_ratio(by_scheme, scheme, base));
  }
  if (!ratios.empty()) {
    result.summary.push_back(
        fmt::format("At initialization, the ratio of the largest curvatures, seed by seed, is {} ({} layers, {} pairs; "
                    "{} seeds, geometric means with 95% intervals).",
                    join(ratios, ", "), part.layers, part.pairs, part.seeds));
  }
  std::vector<std::string> shares;
  for (const auto& [scheme, splits] : by_scheme) {
    std::vector<double> share;
    for (const CurvatureSplit& each : splits)
      share.push_back(each.whole.gauss_newton.max.value / each.whole.hessian.max.value);
    const Interval interval = geometric_interval(share);
    shares.push_back(std::isfinite(interval.low) ? fmt::format("{:.3g} ({:.3g} to {:.3g}) with {}", interval.mean,
                                                               interval.low, interval.high, display_name(scheme))
                                                 : fmt::format("{:.3g} with {}", interval.mean, display_name(scheme)));
  }
  result.summary.push_back(
      fmt::format("The largest eigenvalue of the Gauss–Newton part, relative to that of the Hessian, is {} ({}).",
                  join(shares, ", "), seeds_in_words(part.seeds)));
  result.measurements = lists_of(by_scheme);
  return result;
}

}  // namespace plumb
