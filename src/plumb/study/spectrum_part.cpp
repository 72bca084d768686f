// Hessian spectra at initialization, by scheme.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/base/progress.h"
#include "plumb/study/plan.h"

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
};

void describe(Fields& field, SpectrumStudy& part) {
  field("layers", part.layers, kLayersMeaning, count_from(1));
  field("pairs", part.pairs, kPairsMeaning, count_from(0));
  field("steps", part.steps, "Lanczos steps per probe", count_from(1));
  field("probes", part.probes, "number of start vectors; two or more give error bars", count_from(1));
  field("batch_tokens", part.batch_tokens, "tokens per micro-batch", count_from(1));
  field("graph_memory_gib", part.graph_memory_gib, "memory for gradient graphs kept between products",
        at_least(0).in("GiB"));
  field("layer_steps", part.layer_steps,
        "Lanczos steps for the diagonal block of each layer; 0: blocks are not measured", count_from(0));
  field("seeds", part.seeds, "initializations to measure λ_max for; the first one has the whole spectrum",
        count_from(1));
  field("seed_steps", part.seed_steps, "Lanczos steps for the others", count_from(1));
}

/// What is measured for a scheme.
enum class SpectrumKind {
  whole,      // the spectrum of the full Hessian
  by_layer,   // the spectrum of each layer's block
  sharpness,  // only the extremes, for further seeds of the initialization
};

using PlannedSpectrum = Planned<SpectrumReport>;

PlannedSpectrum planned_spectrum(PartPlan& plan, StudyContext& context, const std::string& scheme,
                                 const SpectrumStudy& part, SpectrumKind kind, int64_t seed = 0) {
  const ModelConfig config = model_for(context, scheme, part.layers);
  const bool extremes = kind == SpectrumKind::sharpness;
  const int64_t steps = kind == SpectrumKind::by_layer ? part.layer_steps : extremes ? part.seed_steps : part.steps;
  const int64_t probes = extremes ? 1 : part.probes;
  MeasurementRequest request;
  request.name = kind == SpectrumKind::whole      ? "spectrum-" + file_name(scheme)
                 : kind == SpectrumKind::by_layer ? "layer-spectra-" + file_name(scheme)
                                                  : fmt::format("sharpness-{}-{}", file_name(scheme), seed);
  request.label = (kind == SpectrumKind::whole      ? "spectrum, "
                   : kind == SpectrumKind::by_layer ? "spectra by layer, "
                                                    : "sharpness, ") +
                  display_name(scheme);
  request.settings = {{"data", context.batch_settings},
                      {"model", settings_of(config)},
                      {"pairs", part.pairs},
                      {"steps", steps},
                      {"probes", probes},
                      {"batch_tokens", part.batch_tokens},
                      {"seed", context.config.study.seed + seed}};
  // A step costs as much as two gradients; all blocks together, about three times as much.
  request.work =
      work_of(config, static_cast<double>(part.pairs * steps * probes * 40)) * (kind == SpectrumKind::by_layer ? 3 : 1);
  request.measure = [&context, config, part, kind, steps, probes, seed, label = request.label] {
    const std::unique_ptr<Model> model = initialized_model(context, config, seed);
    SpectrumOptions options;
    options.by_layer = kind == SpectrumKind::by_layer;
    options.steps = steps;
    options.probes = probes;
    options.seed = static_cast<uint64_t>(context.config.study.seed + seed);
    options.hessian.graph_memory = static_cast<int64_t>(part.graph_memory_gib * 1073741824.0);
    Progress progress(label, steps * probes);
    return result_json(
        measure_spectrum(*model, measured_batches(context, part.pairs, part.batch_tokens), options,
                         [&](int64_t done, int64_t, const std::string& note) { progress.update(done, note); }));
  };
  return plan.add<SpectrumReport>(request);
}

/// The measurements of one scheme.
struct SchemeSpectra {
  PlannedSpectrum whole;
  std::vector<PlannedSpectrum> further;  // the extremes for further seeds
  std::optional<PlannedSpectrum> by_layer;

  [[nodiscard]] const Spectrum& spectrum() const { return whole->whole.value(); }
  /// [seed]: λ_max.
  [[nodiscard]] std::vector<Extreme> sharpness() const {
    std::vector<Extreme> all = {spectrum().max};
    for (const PlannedSpectrum& each : further) all.push_back(each->whole.value().max);
    return all;
  }
};
using Spectra = std::map<std::string, SchemeSpectra>;  // by scheme

/// The largest absolute eigenvalue.
double reach(const Spectrum& spectrum) { return std::max(std::abs(spectrum.max.value), std::abs(spectrum.min.value)); }

/// Whether a spectrum extends so much further than the median one that it would hide the others.
bool off_scale(const Spectrum& spectrum, const Spectra& all) {
  constexpr double kFar = 1000;
  std::vector<double> reaches;
  for (const auto& [scheme, each] : all) reaches.push_back(reach(each.spectrum()));
  std::nth_element(reaches.begin(), reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2), reaches.end());
  return !(reach(spectrum) <= kFar * reaches[reaches.size() / 2]);
}

/// λ_max of each layer's block in a stack, first to last.
std::vector<Extreme> sharpest_by_layer(const SpectrumReport& report, StackKind stack) {
  std::vector<Extreme> layers;
  for (const BlockSpectrum& block : report.blocks) {
    if (block.id.stack == stack) layers.push_back(block.spectrum.max);
  }
  return layers;
}

std::string growth_sentence(const Spectra& by_scheme, StackKind stack) {
  std::vector<std::string> factors;
  for (const auto& [scheme, spectra] : by_scheme) {
    const std::vector<Extreme> layers = sharpest_by_layer(**spectra.by_layer, stack);
    factors.push_back(fmt::format("{:.2g} with {}", layers.back().value / layers.front().value, display_name(scheme)));
  }
  return fmt::format(
      "From the first {} layer to the last, the largest curvature within a layer changes by a factor of {} (one seed, "
      "no interval).",
      to_string(stack), fmt::join(factors, ", "));
}

/// "11.0162 ± 0.0005": as many digits as the residual supports.
std::string in_words(const Extreme& extreme) {
  const auto [value, error] = extreme;
  if (!(error > 0) || !std::isfinite(error)) return fmt::format("{:.4g}", value);
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(error))), 0, 6);
  return fmt::format("{:.{}f} ± {:.1g}", value, decimals, error);
}

/// The traces with their standard errors; empty if a single probe gives none.
std::string traces_in_words(const Spectrum& first, const Spectrum& second) {
  if (!first.trace.error || !second.trace.error) return {};
  return fmt::format("; the trace is {:.4g} ± {:.2g} and {:.4g} ± {:.2g} (standard errors)", first.trace.mean,
                     *first.trace.error, second.trace.mean, *second.trace.error);
}

/// λ_max of each layer's block, with the other layers held fixed.
Figure layers_figure(const Spectra& by_scheme, const std::vector<StackKind>& stacks, const SpectrumStudy& part) {
  Figure figure{
      "hessian_by_layer",
      "Curvature by layer at initialization",
      fmt::format("The largest eigenvalue of each layer's diagonal block of the Hessian, with the other layers "
                  "held fixed; {} Lanczos steps; bands are Ritz residuals of the first seed, not intervals "
                  "over seeds. Solid: decoder; dashed: encoder.",
                  part.layer_steps),
      "line",
      {"layer"},
      {"λ_max of the block", true}};
  for (const auto& [scheme, spectra] : by_scheme) {
    for (const StackKind stack : stacks) {
      Series line{fmt::format("{}, {}", display_name(scheme), to_string(stack)), scheme};
      line.style = stack == StackKind::decoder ? "solid" : "dashed";
      int64_t layer = 0;
      for (const auto& [top, error] : sharpest_by_layer(**spectra.by_layer, stack)) {
        line.point(++layer, top, std::max(top - error, 1e-3 * top), top + error);  // the axis is logarithmic
      }
      figure.series.push_back(line);
    }
  }
  return figure;
}

/// λ_max of every seed, from which the interval of the verdict is computed.
Table seeds_table(const StudyContext& context, const Spectra& by_scheme, const SpectrumStudy& part) {
  Table table{"hessian_seeds",
              "Largest eigenvalue by seed",
              "λ_max with its Ritz residual. Intervals over seeds do not include the residuals.",
              {"scheme", "seed", "Lanczos steps", "λ_max", "±"}};
  for (const auto& [scheme, spectra] : by_scheme) {
    int64_t seed = 0;
    for (const auto& [value, error] : spectra.sharpness()) {
      table.row(scheme, context.config.study.seed + seed, seed == 0 ? part.steps : part.seed_steps, value, error);
      ++seed;
    }
  }
  return table;
}

/// The density, the extreme eigenvalues and their table, of the first seed.
void report_spectra(const StudyContext& context, const SpectrumStudy& part, const Spectra& by_scheme,
                    PartResult& result) {
  Figure density{
      "hessian_density",
      "Hessian spectrum at initialization",
      fmt::format("Density of the eigenvalues of the loss's Hessian at initialization, by stochastic Lanczos "
                  "quadrature: {} steps with full re-orthogonalization, {} probe vector{}, a Gaussian "
                  "kernel. {}, {} examples, first seed.{}",
                  part.steps, part.probes, part.probes == 1 ? "" : "s",
                  layers_in_words(model_for(context, context.config.study.schemes.front(), part.layers)), part.pairs,
                  part.probes == 1 ? " One probe gives no error bars: the heights are rough." : ""),
      "density",
      {"eigenvalue"},
      {"density", true}};
  density.y.floor = 1e-9;  // keeps one eigenvalue in millions visible
  Figure extremes{"hessian_extremes",
                  "Extreme eigenvalues of the Hessian at initialization",
                  "The largest and smallest Ritz values of the first seed; each has an eigenvalue within its whiskers, "
                  "the Ritz residual. They are not intervals over seeds.",
                  "bar",
                  {""},
                  {"eigenvalue"}};
  Table table{
      "hessian",
      "Curvature at initialization",
      "Of the first seed: λ with its Ritz residual; the trace, an average over random probes, with its standard "
      "error if there is more than one.",
      {"scheme", "λ_max", "±", "λ_min", "±", "trace", "± (s.e.)", "loss", "parameters"}};
  for (const auto& [scheme, spectra] : by_scheme) {
    const Spectrum& spectrum = spectra.spectrum();
    const auto [top, top_error] = spectrum.max;
    const auto [bottom, bottom_error] = spectrum.min;
    Series line{display_name(scheme), scheme};
    Series bars{display_name(scheme), scheme};
    if (off_scale(spectrum, by_scheme)) {
      const std::string note =
          fmt::format("{} ranges from {:.2g} to {:.2g} and is not drawn.", display_name(scheme), bottom, top);
      for (Figure* figure : {&density, &extremes}) figure->notes.push_back(note);
      line.point(0, std::nan(""));
      bars.point("λ_max", std::nan(""));
    } else {
      line.x = spectrum.density.x;
      line.y = spectrum.density.y;
      bars.point("λ_max", top, top - top_error, top + top_error);
      bars.point("λ_min", bottom, bottom - bottom_error, bottom + bottom_error);
    }
    density.series.push_back(line);
    extremes.series.push_back(bars);
    table.row(scheme, top, top_error, bottom, bottom_error, spectrum.trace.mean,
              spectrum.trace.error.value_or(std::nan("")), spectra.whole->loss, spectra.whole->parameters);
  }
  result.figures = {density, extremes};
  result.tables = {table};
}

/// Compares the largest eigenvalues of Post-LN and Pre-LN, seed by seed.
void judge_sharpness(const StudyContext& context, const SpectrumStudy& part, const SchemeSpectra& post_ln,
                     const SchemeSpectra& pre_ln, PartResult& result) {
  const std::vector<Extreme> first = post_ln.sharpness(), second = pre_ln.sharpness();
  std::vector<double> ratios;
  for (size_t seed = 0; seed < first.size(); ++seed) ratios.push_back(first[seed].value / second[seed].value);
  const Judgment judgment = judge(ratios, Region::above(1.1, 1), Scale::logarithmic);
  result.verdicts.push_back(
      {"curvature", "The Post-LN loss has more curvature at initialization than the Pre-LN loss",
       "Understanding Transformer Models at Initialization (course talk, 2022)",
       setting_of(context, model_for(context, "post-ln", part.layers)), "λ_max with Post-LN / with Pre-LN", judgment,
       fmt::format("For the first seed, λ_max is {} and {} (± Ritz residuals){}.", in_words(first.front()),
                   in_words(second.front()), traces_in_words(post_ln.spectrum(), pre_ln.spectrum())),
       "hessian_density"});
  result.summary.push_back(
      fmt::format("At initialization, the largest eigenvalue of the Hessian with Post-LN is {} times that with Pre-LN "
                  "({}; {} layers, {} pairs).",
                  with_interval(judgment.effect), seeds_in_words(part.seeds), part.layers, part.pairs));
}

PartPlan plan(StudyContext& context, const SpectrumStudy& part) {
  PartPlan plan(context);
  Spectra by_scheme;
  for (const std::string& scheme : context.config.study.schemes) {
    SchemeSpectra spectra{planned_spectrum(plan, context, scheme, part, SpectrumKind::whole), {}, {}};
    if (part.layer_steps > 0) spectra.by_layer = planned_spectrum(plan, context, scheme, part, SpectrumKind::by_layer);
    for (int64_t seed = 1; seed < part.seeds; ++seed)
      spectra.further.push_back(planned_spectrum(plan, context, scheme, part, SpectrumKind::sharpness, seed));
    by_scheme.emplace(scheme, spectra);
  }
  plan.report = [&context, part, by_scheme] {
    PartResult result;
    report_spectra(context, part, by_scheme, result);
    if (part.layer_steps > 0) result.figures.push_back(layers_figure(by_scheme, stacks_of(context), part));
    if (part.seeds > 1) result.tables.push_back(seeds_table(context, by_scheme, part));
    const auto post_ln = by_scheme.find("post-ln"), pre_ln = by_scheme.find("pre-ln");
    if (post_ln != by_scheme.end() && pre_ln != by_scheme.end())
      judge_sharpness(context, part, post_ln->second, pre_ln->second, result);
    if (part.layer_steps > 0) result.summary.push_back(growth_sentence(by_scheme, last_stack(context)));
    return result;
  };
  return plan;
}

[[maybe_unused]] const bool kSpectrum =
    add_part<SpectrumStudy>("spectrum", "the Hessian's spectrum at initialization, by the Lanczos method",
                            "Ghorbani et al. 2019, arXiv 1901.10159", {.place = 4, .plan = plan});

}  // namespace
}  // namespace plumb
