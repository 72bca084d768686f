// Hessian spectra at initialization, by scheme.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/base/progress.h"
#include "plumb/study/part.h"

namespace plumb {
namespace {

/// What is measured for a scheme.
enum class SpectrumKind {
  whole,      // the spectrum of the full Hessian
  by_layer,   // the spectrum of each layer's block
  sharpness,  // only the extremes, for further seeds of the initialization
};

MeasurementRequest spectrum_request(StudyContext& context, const std::string& scheme, const SpectrumStudy& part,
                                    SpectrumKind kind, int64_t seed = 0) {
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
    return to_json(
        measure_spectrum(*model, measured_batches(context, part.pairs, part.batch_tokens), options,
                         [&](int64_t done, int64_t, const std::string& note) { progress.update(done, note); }));
  };
  return request;
}

SpectrumReport spectrum_of(StudyContext& context, const std::string& scheme, const SpectrumStudy& part,
                           SpectrumKind kind, int64_t seed = 0) {
  return context.measurements.get(spectrum_request(context, scheme, part, kind, seed)).get<SpectrumReport>();
}

using Spectra = std::map<std::string, SpectrumReport>;  // by scheme

/// The largest absolute eigenvalue.
double reach(const SpectrumReport& report) {
  return std::max(std::abs(report.whole.value().max.value), std::abs(report.whole.value().min.value));
}

/// Whether a spectrum extends so much further than the median one that it would hide the others.
bool off_scale(const SpectrumReport& report, const Spectra& all) {
  constexpr double kFar = 1000;
  std::vector<double> reaches;
  for (const auto& [scheme, each] : all) reaches.push_back(reach(each));
  std::nth_element(reaches.begin(), reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2), reaches.end());
  return !(reach(report) <= kFar * reaches[reaches.size() / 2]);
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
  for (const auto& [scheme, report] : by_scheme) {
    const std::vector<Extreme> layers = sharpest_by_layer(report, stack);
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
  Figure figure{"hessian_by_layer", "Curvature by layer at initialization"};
  figure.caption = fmt::format(
      "The largest eigenvalue of each layer's diagonal block of the Hessian, with the other layers held fixed; {} "
      "Lanczos "
      "steps; bands are Ritz residuals of the first seed, not intervals over seeds. Solid: decoder; dashed: encoder.",
      part.layer_steps);
  figure.kind = "line";
  figure.x = {"layer"};
  figure.y = {"λ_max of the block", true};
  for (const auto& [scheme, report] : by_scheme) {
    for (const StackKind stack : stacks) {
      Series line{fmt::format("{}, {}", display_name(scheme), to_string(stack)), scheme};
      line.style = stack == StackKind::decoder ? "solid" : "dashed";
      int64_t layer = 0;
      for (const auto& [top, error] : sharpest_by_layer(report, stack)) {
        line.point(++layer, top, std::max(top - error, 1e-3 * top), top + error);  // the axis is logarithmic
      }
      figure.series.push_back(line);
    }
  }
  return figure;
}

/// λ_max of every seed, from which the interval of the verdict is computed.
Table seeds_table(const StudyContext& context, const std::map<std::string, std::vector<Extreme>>& sharpness,
                  const SpectrumStudy& part) {
  Table table{"hessian_seeds",
              "Largest eigenvalue by seed",
              "λ_max with its Ritz residual. Intervals over seeds do not include the residuals.",
              {"scheme", "seed", "Lanczos steps", "λ_max", "±"}};
  for (const auto& [scheme, by_seed] : sharpness) {
    int64_t seed = 0;
    for (const auto& [value, error] : by_seed) {
      table.rows.push_back({scheme, context.config.study.seed + seed, seed == 0 ? part.steps : part.seed_steps,
                            finite_or_null(value), finite_or_null(error)});
      ++seed;
    }
  }
  return table;
}

}  // namespace

std::vector<MeasurementRequest> requests(StudyContext& context, const SpectrumStudy& part) {
  std::vector<MeasurementRequest> list;
  for (const std::string& scheme : context.config.study.schemes) {
    list.push_back(spectrum_request(context, scheme, part, SpectrumKind::whole));
    if (part.layer_steps > 0) list.push_back(spectrum_request(context, scheme, part, SpectrumKind::by_layer));
    for (int64_t seed = 1; seed < part.seeds; ++seed)
      list.push_back(spectrum_request(context, scheme, part, SpectrumKind::sharpness, seed));
  }
  return list;
}

PartResult measure(StudyContext& context, const SpectrumStudy& part) {
  Spectra spectra;
  std::map<std::string, std::vector<Extreme>> sharpness;  // [seed]: λ_max
  for (const std::string& scheme : context.config.study.schemes) {
    spectra[scheme] = spectrum_of(context, scheme, part, SpectrumKind::whole);
    sharpness[scheme] = {spectra[scheme].whole.value().max};
    for (int64_t seed = 1; seed < part.seeds; ++seed)
      sharpness[scheme].push_back(spectrum_of(context, scheme, part, SpectrumKind::sharpness, seed).whole.value().max);
  }

  PartResult result;
  Figure density{"hessian_density", "Hessian spectrum at initialization"};
  density.caption = fmt::format(
      "Density of the eigenvalues of the loss's Hessian at initialization, by stochastic Lanczos quadrature: {} steps "
      "with full re-orthogonalization, {} probe vector{}, a Gaussian kernel. {}, {} examples, first seed.{}",
      part.steps, part.probes, part.probes == 1 ? "" : "s",
      layers_in_words(model_for(context, context.config.study.schemes.front(), part.layers)), part.pairs,
      part.probes == 1 ? " One probe gives no error bars: the heights are rough." : "");
  density.kind = "density";
  density.x = {"eigenvalue"};
  density.y = {"density", true};
  density.y.floor = 1e-9;  // keeps one eigenvalue in millions visible
  Figure extremes{"hessian_extremes", "Extreme eigenvalues of the Hessian at initialization"};
  extremes.caption =
      "The largest and smallest Ritz values of the first seed; each has an eigenvalue within its whiskers, the Ritz "
      "residual. They are not intervals over seeds.";
  extremes.kind = "bar";
  extremes.x = {""};
  extremes.y = {"eigenvalue"};
  Table table{
      "hessian",
      "Curvature at initialization",
      "Of the first seed: λ with its Ritz residual; the trace, an average over random probes, with its standard "
      "error if there is more than one.",
      {"scheme", "λ_max", "±", "λ_min", "±", "trace", "± (s.e.)", "loss", "parameters"}};
  for (const auto& [scheme, report] : spectra) {
    const Spectrum& spectrum = report.whole.value();
    const auto [top, top_error] = spectrum.max;
    const auto [bottom, bottom_error] = spectrum.min;
    Series line{display_name(scheme), scheme};
    Series bars{display_name(scheme), scheme};
    if (off_scale(report, spectra)) {
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
    table.rows.push_back({scheme, finite_or_null(top), finite_or_null(top_error), finite_or_null(bottom),
                          finite_or_null(bottom_error), finite_or_null(spectrum.trace.mean),
                          finite_or_null(spectrum.trace.error.value_or(std::nan(""))), finite_or_null(report.loss),
                          report.parameters});
  }
  result.figures = {density, extremes};
  std::string growth;
  if (part.layer_steps > 0) {
    Spectra by_layer;
    for (const std::string& scheme : context.config.study.schemes)
      by_layer[scheme] = spectrum_of(context, scheme, part, SpectrumKind::by_layer);
    result.figures.push_back(layers_figure(by_layer, stacks_of(context), part));
    growth = growth_sentence(by_layer, last_stack(context));
  }
  result.tables = {table};
  if (part.seeds > 1) result.tables.push_back(seeds_table(context, sharpness, part));
  if (spectra.count("post-ln") != 0 && spectra.count("pre-ln") != 0) {
    const Spectrum& post_ln = spectra["post-ln"].whole.value();
    const Spectrum& pre_ln = spectra["pre-ln"].whole.value();
    std::vector<double> ratios;
    for (size_t seed = 0; seed < sharpness["post-ln"].size(); ++seed)
      ratios.push_back(sharpness["post-ln"][seed].value / sharpness["pre-ln"][seed].value);
    const Judgment judgment = judge(ratios, Region::above(1.1, 1), Scale::logarithmic);
    result.verdicts.push_back(
        {"curvature", "The Post-LN loss has more curvature at initialization than the Pre-LN loss",
         "Understanding Transformer Models at Initialization (course talk, 2022)",
         setting_of(context, model_for(context, "post-ln", part.layers)), "λ_max with Post-LN / with Pre-LN", judgment,
         fmt::format("For the first seed, λ_max is {} and {} (± Ritz residuals){}.", in_words(post_ln.max),
                     in_words(pre_ln.max), traces_in_words(post_ln, pre_ln)),
         "hessian_density"});
    result.summary.push_back(fmt::format(
        "At initialization, the largest eigenvalue of the Hessian with Post-LN is {} times that with Pre-LN "
        "({}; {} layers, {} pairs).",
        with_interval(judgment.effect), seeds_in_words(part.seeds), part.layers, part.pairs));
  }
  if (!growth.empty()) result.summary.push_back(growth);
  return result;
}

}  // namespace plumb
