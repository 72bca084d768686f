#include "plumb/analysis/curvature/spectrum_json.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/analysis/result_fields.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/parse_number.h"

namespace plumb {
namespace {

void describe_with_error(Fields& field, const std::string& name, Extreme& extreme) {
  field(name, extreme.value);
  field(name + "_error", extreme.error);
}
void describe_with_error(Fields& field, const std::string& name, Estimate& estimate) {
  field(name, estimate.mean);
  describe_or_null(field, name + "_error", estimate.error);
}

/// A band around the density, of several probes only.
void describe_band(Fields& field, const char* key, std::vector<double>& edge, bool present) {
  std::optional<double> none;
  if (present) {
    field(key, edge);
  } else {
    describe_or_null(field, key, none);
  }
}

void describe_quantiles(Fields& field, std::vector<std::pair<double, double>>& quantiles) {
  NamedNumbers by_share;
  for (const auto& [share, value] : quantiles) by_share.emplace_back(fmt::format("{:g}", share), value);
  field("quantiles", by_share);
  quantiles.clear();
  for (const auto& [share, value] : by_share)
    quantiles.emplace_back(parse_number<double>(share).value_or(std::nan("")), value);
}

void describe_probe(Fields& field, int64_t place, ProbeSpectrum& probe) {
  field("probe", place);
  field("steps", probe.steps);
  field("exhausted", probe.exhausted);
  field("rounding", probe.rounding);
  field("values", probe.ritz.values);
  field("weights", probe.ritz.weights);
  field("residuals", probe.ritz.residuals);
}

/// `lanczos`: how it was computed; empty if all eigenvalues were.
void describe_spectrum(Fields& field, Spectrum& spectrum, const std::optional<LanczosSettings>& lanczos) {
  describe_with_error(field, "max", spectrum.max);
  describe_with_error(field, "min", spectrum.min);
  describe_with_error(field, "trace", spectrum.trace);
  describe_with_error(field, "frobenius", spectrum.frobenius);
  const auto mass = [&spectrum](Fields& inner) {
    inner("zero_band", spectrum.zero_band);
    describe_with_error(inner, "negative", spectrum.negative);
    describe_with_error(inner, "positive", spectrum.positive);
  };
  field.section("mass", mass, true);
  describe_quantiles(field, spectrum.quantiles);
  const auto density = [&density = spectrum.density, several = lanczos && lanczos->probes > 1](Fields& inner) {
    inner("sigma", density.sigma);
    inner("x", density.x);
    inner("y", density.y);
    describe_band(inner, "low", density.low, several);
    describe_band(inner, "high", density.high, several);
  };
  field.section("density", density, true);
  if (lanczos) {
    std::vector<ProbeSpectrum>& probes = spectrum.probes;
    field.sections(
        "ritz", probes.size(), [&probes](size_t count) { probes.assign(count, {}); },
        [&probes](size_t i, Fields& inner) { describe_probe(inner, static_cast<int64_t>(i), probes[i]); });
  } else {
    field("asymmetry", spectrum.asymmetry);
    field("eigenvalues", spectrum.eigenvalues);
  }
}

}  // namespace

void describe(Fields& field, SpectrumReport& report) {
  std::string method = report.lanczos ? "lanczos" : "dense";
  std::string type = report.type == at::kDouble ? "float64" : "float32";
  field("method", method);
  field("dtype", type);
  report.type = type == "float64" ? at::kDouble : at::kFloat;
  field("parameters", report.parameters);
  field("tokens", report.tokens);
  field("label_smoothing", report.label_smoothing);
  field("loss", report.loss);
  field("gradient_norm", report.gradient_norm);
  if (method == "lanczos") {
    if (!report.lanczos) report.lanczos.emplace();
    auto seed = static_cast<int64_t>(report.lanczos->seed);
    field("steps", report.lanczos->steps);
    field("probes", report.lanczos->probes);
    field("seed", seed);
    report.lanczos->seed = static_cast<uint64_t>(seed);
  }
  std::vector<BlockSpectrum>& blocks = report.blocks;
  if (!report.whole) {
    field.sections(
        "blocks", blocks.size(), [&blocks](size_t count) { blocks.resize(count); },
        [&](size_t i, Fields& inner) {
          describe_place(inner, "name", blocks[i].id);
          inner("parameters", blocks[i].parameters);
          describe_spectrum(inner, blocks[i].spectrum, report.lanczos);
        });
  }
  if (blocks.empty()) describe_spectrum(field, report.whole ? *report.whole : report.whole.emplace(), report.lanczos);
  field("micro_batches", report.micro_batches);
  field("graphs_kept", report.graphs_kept);
  field("products", report.products);
  field("threads", report.threads);
  field("processes", report.processes);
  field("gradient_seconds", report.gradient_seconds);
  field("hvp_seconds", report.hvp_seconds);
  field("seconds", report.seconds);
}

Json to_json(const SpectrumReport& report) {
  Json json = make_document("spectrum", 1);
  json.update(described_json(report));
  return json;
}

void from_json(const Json& json, SpectrumReport& report) { report = from_described_json<SpectrumReport>(json); }

}  // namespace plumb
