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

struct CurvatureStudy {
  int64_t layers = 6;
  int64_t seeds = 3;
  int64_t pairs = 50;
  int64_t steps = 40;
  int64_t layer_steps = 0;
  int64_t batch_tokens = 1024;
  double graph_memory_gib = 4.0;
};

void describe(Fields& field, CurvatureStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("seeds", part.seeds, kSeedsMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
  field("steps", part.steps, "Lanczos steps for each of the three matrices", count_from(1));
  field("layer_steps", part.layer_steps, "the same for the diagonal blocks of each layer; 0: blocks are not measured",
        count_from(0));
  field("batch_tokens", part.batch_tokens, "tokens per micro-batch", count_from(1));
  field("graph_memory_gib", part.graph_memory_gib,
        "memory for the Hessian's gradient graphs, and again for those of the Gauss–Newton part",
        at_least(0).in("GiB"));
}

using Splits = Planned<std::vector<CurvatureSplit>>;  // [seed]
using SplitsByScheme = std::map<std::string, Splits>;
using ReportsByScheme = std::map<std::string, CurvatureSplitReport>;

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

Figure curvature_figure(const ReportsByScheme& by_scheme, const CurvatureStudy& part, const std::string& layers) {
  Figure figure{"curvature_over_seeds",
                "Largest curvature at initialization: Hessian, Gauss–Newton part and rest",
                fmt::format("The largest eigenvalue of the Hessian H = G + R, of its Gauss–Newton part G and of the "
                            "rest R, after {} Lanczos steps; mean over {} seeds of the initialization with its 95% "
                            "interval. {}, {} examples.",
                            part.steps, part.seeds, layers, part.pairs),
                "bar",
                {""},
                {"λ_max"}};
  for (const auto& [scheme, report] : by_scheme) {
    Series bars{display_name(scheme), scheme};
    for (const SplitMatrix& matrix : kSplitMatrices)
      bars.point(matrix.name, (report.whole.*matrix.report).max.over_seeds);
    figure.series.push_back(bars);
  }
  return figure;
}

/// λ_max of the layers' blocks of the Hessian and of its Gauss–Newton part.
Figure block_curvature_figure(const ReportsByScheme& by_scheme, StackKind stack, const CurvatureStudy& part) {
  Figure figure{"curvature_by_layer_" + to_string(stack),
                fmt::format("Largest curvature within a layer at initialization, {}", to_string(stack)),
                fmt::format("The largest eigenvalue of each layer's diagonal block, with the other layers held fixed. "
                            "Solid: Hessian; dashed: its Gauss–Newton part. Mean over {} seeds with its 95% interval.",
                            part.seeds),
                "line",
                {"layer"},
                {"λ_max of the block", true}};
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

Table curvature_table(const ReportsByScheme& by_scheme) {
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
      table.row(scheme, block, matrix.name, max.over_seeds, max.error, min.over_seeds, min.error);
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
  const std::vector<CurvatureSplit>& first = *by_scheme.at(scheme);
  const std::vector<CurvatureSplit>& second = *by_scheme.at(base);
  std::vector<double> ratios;
  for (size_t i = 0; i < first.size(); ++i)
    ratios.push_back(first[i].whole.hessian.max.value / second[i].whole.hessian.max.value);
  const Interval ratio = geometric_interval(ratios);
  const std::string pair = fmt::format("{} over {}", display_name(scheme), display_name(base));
  if (!std::isfinite(ratio.low)) return fmt::format("{:.3g} ({}, one seed)", ratio.mean, pair);
  return fmt::format("{:.3g} ({:.3g} to {:.3g}; {})", ratio.mean, ratio.low, ratio.high, pair);
}

PartResult report_curvature(const StudyContext& context, const CurvatureStudy& part, const SplitsByScheme& by_scheme) {
  ReportsByScheme reports;
  for (const auto& [scheme, splits] : by_scheme) reports[scheme] = summarize(*splits);
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
    const Interval interval = geometric_interval(numbers_in(*splits, [](const CurvatureSplit& each) {
      return each.whole.gauss_newton.max.value / each.whole.hessian.max.value;
    }));
    shares.push_back(std::isfinite(interval.low) ? fmt::format("{:.3g} ({:.3g} to {:.3g}) with {}", interval.mean,
                                                               interval.low, interval.high, display_name(scheme))
                                                 : fmt::format("{:.3g} with {}", interval.mean, display_name(scheme)));
  }
  result.summary.push_back(
      fmt::format("The largest eigenvalue of the Gauss–Newton part, relative to that of the Hessian, is {} ({}).",
                  join(shares, ", "), seeds_in_words(part.seeds)));
  result.measurements = result_json(by_scheme);
  return result;
}

PartPlan plan(StudyContext& context, const CurvatureStudy& part) {
  CurvatureSplitOptions options;
  options.steps = part.steps;
  options.layer_steps = part.layer_steps;
  options.seed = static_cast<uint64_t>(context.config.study.seed);
  options.graph_memory = static_cast<int64_t>(part.graph_memory_gib * 1073741824.0);
  PartPlan plan(context);
  SplitsByScheme by_scheme;
  for (const std::string& scheme : context.config.study.schemes) {
    by_scheme.emplace(scheme, over_seeds(plan, context,
                                         {.name = "curvature-" + file_name(scheme),
                                          .label = "curvature, " + display_name(scheme),
                                          .model = model_for(context, scheme, part.layers),
                                          .seeds = part.seeds,
                                          .pairs = part.pairs,
                                          .tokens = static_cast<double>(40 * (3 * part.steps + 6 * part.layer_steps)),
                                          .settings = {{"steps", part.steps},
                                                       {"layer_steps", part.layer_steps},
                                                       {"batch_tokens", part.batch_tokens}},
                                          .batch_tokens = part.batch_tokens},
                                         [options](Model& model, const std::vector<Batch>& batches) {
                                           return measure_curvature_split(model, batches, options);
                                         }));
  }
  plan.report = [&context, part, by_scheme] { return report_curvature(context, part, by_scheme); };
  return plan;
}

[[maybe_unused]] const bool kCurvature = add_part<CurvatureStudy>(
    "curvature", "extreme eigenvalues of the Hessian, its Gauss–Newton part and the rest, over seeds",
    "Schraudolph 2002", {.place = 14, .plan = plan});

}  // namespace
}  // namespace plumb
