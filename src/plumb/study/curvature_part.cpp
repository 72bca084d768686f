// The curvature at initialization over seeds, and how much of it is the Gauss–Newton part.
#include <fmt/format.h>

#include <map>

#include "plumb/analysis/curvature/split.h"
#include "plumb/report/display_name.h"
#include "plumb/report/measured_figures.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct CurvatureStudy : InitialModels {
  CurvatureStudy() : InitialModels{.seeds = 3, .pairs = 50} {}
  int64_t steps = 40;
  int64_t layer_steps = 0;
  int64_t batch_tokens = 1024;
  double graph_memory_gib = 4.0;
};

void describe(Fields& field, CurvatureStudy& part) {
  describe(field, static_cast<InitialModels&>(part));
  field("steps", part.steps, "Lanczos steps for each of the three matrices", count_from(1));
  field("layer_steps", part.layer_steps, "the same for the diagonal blocks of each layer; 0: blocks are not measured",
        count_from(0));
  field("batch_tokens", part.batch_tokens, "tokens per micro-batch", count_from(1));
  field("graph_memory_gib", part.graph_memory_gib,
        "memory for the Hessian's gradient graphs, and again for those of the Gauss–Newton part",
        at_least(0).in("GiB"));
}

using Splits = Planned<std::vector<CurvatureSplit>>;  // [seed]
using SplitsByArm = std::map<std::string, Splits>;
using ReportsByArm = OfArms<CurvatureSplitReport>;

Figure curvature_figure(const ReportsByArm& reports, const CurvatureStudy& part, const std::string& layers) {
  Figure figure{"curvature_over_seeds",
                "Largest curvature at initialization: Hessian, Gauss–Newton part and rest",
                fmt::format("The largest eigenvalue after {} Lanczos steps; {}. {}, {} examples.", part.steps,
                            seeds_in_words(part.seeds), layers, part.pairs),
                "bar",
                {""},
                {"λ_max"}};
  for (const auto& [arm, report] : reports) {
    Series& bars = figure.add(display_name(arm), arm);
    for (const SplitMatrix& matrix : kSplitMatrices)
      bars.point(matrix.name, (report.whole.*matrix.report).max.over_seeds);
  }
  return figure;
}

/// λ_max of the layers' blocks of the Hessian and of its Gauss–Newton part.
Figure block_curvature_figure(const ReportsByArm& reports, StackKind stack, const CurvatureStudy& part) {
  Figure figure{"curvature_by_layer_" + to_string(stack),
                fmt::format("Largest curvature within a layer at initialization, {}", to_string(stack)),
                fmt::format("Of each layer's diagonal block, with the other layers held fixed. Solid: Hessian; dashed: "
                            "its Gauss–Newton part; {}.",
                            seeds_in_words(part.seeds)),
                "line",
                {"layer"},
                {"λ_max of the block", true}};
  for (const auto& [arm, report] : reports) {
    Series& hessian = figure.add(display_name(arm), arm);
    Series& newton = figure.add(display_name(arm) + ", Gauss–Newton part", arm, "dashed");
    for (const CurvatureSplitReport::Layer& layer : report.layers) {
      if (layer.id.stack != stack) continue;
      const auto add = [&](Series& series, const Interval& max) {
        add_eigenvalue(series, layer.id, max.mean, max.low, max.high);
      };
      add(hessian, layer.split.hessian.max.over_seeds);
      add(newton, layer.split.gauss_newton.max.over_seeds);
    }
  }
  return figure;
}

double sharpness(const CurvatureSplit& split) { return split.whole.hessian.max.value; }

PartResult report_curvature(const StudyContext& context, const CurvatureStudy& part, const SplitsByArm& measured) {
  ReportsByArm reports;
  for (const auto& [arm, splits] : measured) reports[arm] = summarize(*splits);
  PartResult result;
  result.figures.push_back(
      curvature_figure(reports, part, layers_in_words(model_for(context, context.arms.front().name, part.layers))));
  if (part.layer_steps > 0) {
    for (const StackKind stack : stacks_of(context))
      result.figures.push_back(block_curvature_figure(reports, stack, part));
  }
  result.tables.push_back(curvature_table(reports));
  result.tables.back().title += " at initialization over seeds";

  const std::string& base = context.arms.back().name;
  const std::vector<double> of_base = numbers_in(*measured.at(base), sharpness);
  std::vector<std::pair<std::string, Interval>> ratios, shares;
  for (const std::string& arm : arm_names(context)) {
    const std::vector<CurvatureSplit>& splits = *measured.at(arm);
    const std::vector<double> to_base = seed_by_seed(numbers_in(splits, sharpness), of_base, std::divides<>());
    if (arm != base) ratios.emplace_back(display_name(arm), geometric_interval(to_base));
    shares.emplace_back(display_name(arm), geometric_interval(numbers_in(splits, [](const CurvatureSplit& each) {
                          return each.whole.gauss_newton.max.value / sharpness(each);
                        })));
  }
  if (!ratios.empty()) {
    result.summary.push_back(
        fmt::format("At initialization, the largest curvature / that with {}: {} ({} layers, {} pairs; {}).",
                    display_name(base), with_intervals(ratios), part.layers, part.pairs, seeds_in_words(part.seeds)));
  }
  result.summary.push_back(fmt::format("Largest eigenvalue of the Gauss–Newton part / of the Hessian: {} ({}).",
                                       with_intervals(shares), seeds_in_words(part.seeds)));
  result.measurements = result_json(measured);
  return result;
}

PartPlan plan(StudyContext& context, const CurvatureStudy& part) {
  CurvatureSplitOptions options;
  options.steps = part.steps;
  options.layer_steps = part.layer_steps;
  options.seed = static_cast<uint64_t>(context.config.study.seed);
  options.graph_memory = static_cast<int64_t>(part.graph_memory_gib * 1073741824.0);
  PartPlan plan(context);
  const SplitsByArm measured = by_arm(context, [&](const std::string& arm) {
    OverSeeds what = of_models(context, part, "curvature", arm);
    what.gradients = static_cast<double>(6 * part.steps + 12 * part.layer_steps);
    what.batch_tokens = part.batch_tokens;
    what.settings = {{"steps", part.steps}, {"layer_steps", part.layer_steps}, {"batch_tokens", part.batch_tokens}};
    return over_seeds(plan, context, what, [options](Model& model, const std::vector<Batch>& batches) {
      return measure_curvature_split(model, batches, options);
    });
  });
  plan.report = [&context, part, measured] { return report_curvature(context, part, measured); };
  return plan;
}

[[maybe_unused]] const bool kCurvature = add_part<CurvatureStudy>(
    "curvature", "extreme eigenvalues of the Hessian, its Gauss–Newton part and the rest, over seeds",
    "Schraudolph 2002", {.place = 15, .plan = plan});

}  // namespace
}  // namespace plumb
