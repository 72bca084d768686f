// Hessian spectra at initialization, by arm, and how much of the largest curvature is the Gauss–Newton part.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/analysis/curvature/split.h"
#include "plumb/base/progress.h"
#include "plumb/report/display_name.h"
#include "plumb/report/measured_figures.h"
#include "plumb/study/over_seeds.h"

namespace plumb {
namespace {

struct SpectrumStudy {
  int64_t layers = 6;
  int64_t pairs = 100;
  int64_t steps = 40;
  int64_t probes = 1;
  int64_t batch_tokens = 1024;
  double graph_memory_gib = 6.0;
  int64_t layer_steps = 0;
  int64_t seeds = 3;
  int64_t seed_steps = 20;
  bool parts = false;
};

void describe(Fields& field, SpectrumStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
  field("steps", part.steps, "Lanczos steps per probe", count_from(1));
  field("probes", part.probes, "number of start vectors; two or more give error bars", count_from(1));
  field("batch_tokens", part.batch_tokens, "tokens per micro-batch", count_from(1));
  field("graph_memory_gib", part.graph_memory_gib,
        "most memory for gradient graphs kept between products, and again for those of the Gauss–Newton part",
        at_least(0).in("GiB"));
  field("layer_steps", part.layer_steps,
        "Lanczos steps for the diagonal block of each layer; 0: blocks are not measured", count_from(0));
  field("seeds", part.seeds, "initializations to measure λ_max for; the first one has the whole spectrum",
        count_from(1));
  field("seed_steps", part.seed_steps, "Lanczos steps for the others, and for each matrix with `parts`", count_from(1));
  field("parts", part.parts,
        "also measures the Hessian's Gauss–Newton part and the rest, over all seeds, and their blocks with as many "
        "`layer_steps`");
}

int64_t graph_memory(const SpectrumStudy& part) { return static_cast<int64_t>(part.graph_memory_gib * 1073741824.0); }

using PlannedSpectrum = Planned<SpectrumReport>;

/// `what`: "spectrum" of the full Hessian, "layer-spectra" of each layer's block, or "sharpness", only the extremes.
PlannedSpectrum planned_spectrum(PartPlan& plan, StudyContext& context, const std::string& arm,
                                 const SpectrumStudy& part, const std::string& what, int64_t steps, int64_t probes,
                                 int64_t seed = 0) {
  const ModelConfig config = model_for(context, arm, part.layers);
  const bool by_layer = what == "layer-spectra";
  MeasurementRequest request;
  request.name = fmt::format("{}-{}{}", what, file_name(arm), seed > 0 ? fmt::format("-{}", seed) : "");
  request.label = fmt::format("{}, {}", what, display_name(arm));
  request.settings = {{"data", context.batch_settings},
                      {"model", settings_of(config)},
                      {"pairs", part.pairs},
                      {"steps", steps},
                      {"probes", probes},
                      {"batch_tokens", part.batch_tokens},
                      {"seed", context.config.study.seed + seed}};
  // A step costs as much as two gradients; all blocks together, about three times as much.
  request.work = work_of(config, 2 * static_cast<double>(steps * probes) * measured_tokens(context, part.pairs)) *
                 (by_layer ? 3 : 1);
  request.measure = [&context, config, part, by_layer, steps, probes, seed, label = request.label] {
    const std::unique_ptr<Model> model = initialized_model(context, config, seed);
    SpectrumOptions options;
    options.by_layer = by_layer;
    options.steps = steps;
    options.probes = probes;
    options.seed = static_cast<uint64_t>(context.config.study.seed + seed);
    options.hessian.graph_memory = graph_memory(part);
    Progress progress(label, steps * probes);
    return result_json(
        measure_spectrum(*model, measured_batches(context, part.pairs, part.batch_tokens), options,
                         [&](int64_t done, int64_t, const std::string& note) { progress.update(done, note); }));
  };
  return plan.add<SpectrumReport>(request);
}

double lambda_max(const SpectrumReport& report) { return report.whole.value().max.value; }
double lambda_min(const SpectrumReport& report) { return report.whole.value().min.value; }

/// The measurements of one arm.
struct ArmSpectra {
  PlannedSpectrum whole;
  std::vector<PlannedSpectrum> further;  // the extremes for further seeds
  std::optional<PlannedSpectrum> by_layer;

  [[nodiscard]] const Spectrum& spectrum() const { return whole->whole.value(); }
  /// [seed]: what `value` takes from its measurement.
  template <typename Value>
  [[nodiscard]] auto by_seed(const Value& value) const {
    std::vector all = {value(*whole)};
    for (const PlannedSpectrum& each : further) all.push_back(value(*each));
    return all;
  }
  /// [seed]: λ_max.
  [[nodiscard]] std::vector<Extreme> sharpness() const {
    return by_seed([](const SpectrumReport& report) { return report.whole.value().max; });
  }
};
using Spectra = std::map<std::string, ArmSpectra>;  // by arm

using Splits = Planned<std::vector<CurvatureSplit>>;  // [seed]
using SplitsByArm = std::map<std::string, Splits>;

/// The Hessian, its Gauss–Newton part and the rest, of every seed.
Splits planned_splits(PartPlan& plan, StudyContext& context, const std::string& arm, const SpectrumStudy& part) {
  CurvatureSplitOptions options;
  options.steps = part.seed_steps;
  options.layer_steps = part.layer_steps;
  options.seed = static_cast<uint64_t>(context.config.study.seed);
  options.graph_memory = graph_memory(part);
  SeededMeasurement what = initial_models(context, {part.layers, part.seeds, part.pairs}, "curvature", arm);
  what.gradients = static_cast<double>(6 * options.steps + 12 * options.layer_steps);
  what.batch_tokens = part.batch_tokens;
  what.settings = {{"steps", options.steps}, {"layer_steps", options.layer_steps}, {"batch_tokens", part.batch_tokens}};
  return over_seeds(plan, context, what, [options](Model& model, const std::vector<Batch>& batches) {
    return measure_curvature_split(model, batches, options);
  });
}

/// The largest absolute eigenvalue.
double reach(const Spectrum& spectrum) { return std::max(std::abs(spectrum.max.value), std::abs(spectrum.min.value)); }

/// Whether a spectrum extends so much further than the median one that it would hide the others.
bool off_scale(const Spectrum& spectrum, const Spectra& all) {
  constexpr double kFar = 1000;
  std::vector<double> reaches;
  for (const auto& [arm, each] : all) reaches.push_back(reach(each.spectrum()));
  return !(reach(spectrum) <= kFar * median_of(reaches));
}

/// λ_max of every seed, from which the interval of the verdict is computed.
Table seeds_table(const StudyContext& context, const Spectra& by_arm, const SpectrumStudy& part) {
  Table table{"hessian_seeds",
              "Largest eigenvalue by seed",
              "λ_max with its Ritz residual. Intervals over seeds do not include the residuals.",
              {"arm", "seed", "Lanczos steps", "λ_max", "±"}};
  for (const auto& [arm, spectra] : by_arm) {
    int64_t seed = 0;
    for (const auto& [value, error] : spectra.sharpness()) {
      table.row(arm, context.config.study.seed + seed, seed == 0 ? part.steps : part.seed_steps, value, error);
      ++seed;
    }
  }
  return table;
}

/// The density and a table of the first seed, and the extreme eigenvalues, also of the parts, over all seeds.
void report_spectra(const StudyContext& context, const SpectrumStudy& part, const Spectra& by_arm,
                    const OfArms<CurvatureSplitReport>& splits, PartResult& result) {
  Figure extremes{"hessian_extremes",
                  "Extreme eigenvalues at initialization",
                  fmt::format("Of the Hessian{}; {}.", splits.empty() ? "" : ", its Gauss–Newton part and the rest",
                              seeds_in_words(part.seeds)),
                  "bar",
                  {""},
                  {"eigenvalue"}};
  Table table{"hessian",
              "Curvature at initialization",
              "Of the first seed: λ with its Ritz residual, and the trace with its standard error over probes.",
              {"arm", "λ_max", "±", "λ_min", "±", "trace", "± (s.e.)", "loss", "parameters"}};
  OfArms<const Spectrum*> drawn;
  for (const auto& [arm, spectra] : by_arm) {
    const Spectrum& spectrum = spectra.spectrum();
    const auto [top, top_error] = spectrum.max;
    const auto [bottom, bottom_error] = spectrum.min;
    const bool far = off_scale(spectrum, by_arm);
    drawn.emplace(arm, far ? nullptr : &spectrum);
    Series& bars = extremes.add(display_name(arm), arm);
    if (far) {
      extremes.notes.push_back(
          fmt::format("{} ranges from {:.2g} to {:.2g} and is not drawn.", display_name(arm), bottom, top));
      bars.point("λ_max", std::nan(""));
    } else {
      bars.point("λ_max", confidence_interval(spectra.by_seed(lambda_max)));
      bars.point("λ_min", confidence_interval(spectra.by_seed(lambda_min)));
      if (splits.contains(arm)) {
        const CurvatureSplitReport::Ends& ends = splits.at(arm).whole;
        bars.point("λ_max, Gauss–Newton part", ends.gauss_newton.max.over_seeds);
        bars.point("λ_max, rest", ends.rest.max.over_seeds);
      }
    }
    table.row(arm, top, top_error, bottom, bottom_error, spectrum.trace.mean,
              spectrum.trace.error.value_or(std::nan("")), spectra.whole->loss, spectra.whole->parameters);
  }
  Figure density = density_figure(drawn);
  density.title += " at initialization";
  density.caption += fmt::format(
      " By stochastic Lanczos quadrature: {} steps with full re-orthogonalization, a Gaussian kernel; probe vectors: "
      "{}. {}, {} examples, first seed.",
      part.steps, part.probes, layers_in_words(model_for(context, context.arms.front().name, part.layers)), part.pairs);
  density.notes = extremes.notes;
  result.figures = {density, extremes};
  result.tables = {table};
}

/// The largest eigenvalues within each layer.
void report_blocks(const StudyContext& context, const SpectrumStudy& part, const Spectra& by_arm,
                   const OfArms<CurvatureSplitReport>& splits, PartResult& result) {
  if (part.parts) {
    for (const StackKind stack : stacks_of(context))
      result.figures.push_back(split_block_figure(stack, splits, part.seeds));
    return;
  }
  OfArms<const std::vector<BlockSpectrum>*> blocks;
  for (const auto& [arm, spectra] : by_arm) blocks.emplace(arm, &(*spectra.by_layer)->blocks);
  Figure& figure = result.figures.emplace_back(block_figure(blocks));
  figure.title += " at initialization";
  figure.caption += fmt::format(" {} Lanczos steps, first seed. Solid: decoder; dashed: encoder.", part.layer_steps);
}

/// What claims can be about, by seed.
void add_quantities(PartPlan& plan, const StudyContext& context, const SpectrumStudy& part, const std::string& arm,
                    const ArmSpectra& spectra) {
  const auto add = [&](const char* name, const char* meaning, Scale scale,
                       double (*value)(const SpectrumReport&)) -> Quantity& {
    Quantity& added = plan.quantity(name, meaning, scale, arm, [spectra, value] { return spectra.by_seed(value); });
    added.figure = "hessian_density";
    added.setting = [&context, layers = part.layers](const std::string& of) {
      return setting_of(context, model_for(context, of, layers));
    };
    return added;
  };
  add("sharpness", "largest eigenvalue of the Hessian", Scale::logarithmic, lambda_max).telling = {
      "largest eigenvalue of the Hessian at initialization"};
  add("most_negative_eigenvalue", "magnitude of the Hessian's most negative eigenvalue", Scale::logarithmic,
      [](const SpectrumReport& report) { return -lambda_min(report); });
  add("hessian_trace", "trace of the Hessian", Scale::linear,
      [](const SpectrumReport& report) { return report.whole->trace.mean; });
  add("spectrum_width", "root mean square of the Hessian's eigenvalues", Scale::logarithmic,
      [](const SpectrumReport& report) {
        return report.whole->frobenius.mean / std::sqrt(static_cast<double>(report.parameters));
      });
}

PartPlan plan(StudyContext& context, const SpectrumStudy& part) {
  PartPlan plan(context);
  Spectra by_arm;
  SplitsByArm splits;
  for (const std::string& arm : arm_names(context)) {
    const auto planned = [&](const char* what, int64_t steps, int64_t probes, int64_t seed = 0) {
      return planned_spectrum(plan, context, arm, part, what, steps, probes, seed);
    };
    ArmSpectra spectra{planned("spectrum", part.steps, part.probes), {}, {}};
    if (part.layer_steps > 0 && !part.parts) spectra.by_layer = planned("layer-spectra", part.layer_steps, part.probes);
    for (int64_t seed = 1; seed < part.seeds; ++seed)
      spectra.further.push_back(planned("sharpness", part.seed_steps, 1, seed));
    if (part.parts) splits.emplace(arm, planned_splits(plan, context, arm, part));
    by_arm.emplace(arm, spectra);
  }
  for (const auto& [arm, spectra] : by_arm) add_quantities(plan, context, part, arm, spectra);
  for (const auto& [arm, of_arm] : splits) {
    Quantity& share =
        plan.quantity("gauss_newton_share", "largest eigenvalue of the Gauss–Newton part / of the Hessian",
                      Scale::logarithmic, arm, [of_arm = of_arm] {
                        return numbers_in(*of_arm, [](const CurvatureSplit& each) {
                          return each.whole.gauss_newton.max.value / each.whole.hessian.max.value;
                        });
                      });
    share.in_comparison_table = false;
    share.figure = "hessian_extremes";
    share.telling = {share.meaning};
  }
  plan.report = [&context, part, by_arm, splits] {
    OfArms<CurvatureSplitReport> reports;
    for (const auto& [arm, of_seeds] : splits) reports[arm] = summarize(*of_seeds);
    PartResult result;
    report_spectra(context, part, by_arm, reports, result);
    if (part.layer_steps > 0) report_blocks(context, part, by_arm, reports, result);
    if (part.seeds > 1) result.tables.push_back(seeds_table(context, by_arm, part));
    if (!part.parts) return result;
    result.tables.push_back(curvature_table(reports));
    result.tables.back().title += " at initialization over seeds";
    result.measurements = result_json(splits);
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kSpectrum = add_part<SpectrumStudy>(
    "spectrum", "the Hessian's spectrum at initialization, by the Lanczos method",
    "Ghorbani et al. 2019, arXiv 1901.10159; Schraudolph 2002", {.order = 5, .any_depth = true, .plan = plan});

}  // namespace
}  // namespace plumb
