#include "plumb/analysis/curvature/spectrum_json.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

void put(Json& json, const std::string& name, const Extreme& extreme) {
  json[name] = extreme.value;
  json[name + "_error"] = extreme.error;
}
void put(Json& json, const std::string& name, const Estimate& estimate) {
  json[name] = estimate.mean;
  json[name + "_error"] = or_null(estimate.error);
}

void get(const Json& json, const std::string& name, Extreme& extreme) {
  extreme = {number_of(json.at(name)), number_of(json.at(name + "_error"))};
}
void get(const Json& json, const std::string& name, Estimate& estimate) {
  estimate.mean = number_of(json.at(name));
  const Json& error = json.at(name + "_error");
  if (!error.is_null()) estimate.error = error.get<double>();
}

void put(Json& json, const Spectrum& spectrum) {
  put(json, "max", spectrum.max);
  put(json, "min", spectrum.min);
  put(json, "trace", spectrum.trace);
  put(json, "frobenius", spectrum.frobenius);
  json["mass"]["zero_band"] = spectrum.zero_band;
  put(json["mass"], "negative", spectrum.negative);
  put(json["mass"], "positive", spectrum.positive);
  for (const auto& [share, value] : spectrum.quantiles) json["quantiles"][fmt::format("{:g}", share)] = value;
  const Density& density = spectrum.density;
  const auto band = [](const std::vector<double>& edge) { return edge.empty() ? Json() : Json(edge); };
  json["density"] = {{"sigma", density.sigma},
                     {"x", density.x},
                     {"y", density.y},
                     {"low", band(density.low)},
                     {"high", band(density.high)}};
  if (spectrum.asymmetry) {
    json["asymmetry"] = *spectrum.asymmetry;
    json["eigenvalues"] = spectrum.eigenvalues;
    return;
  }
  json["ritz"] = Json::array();
  for (const ProbeSpectrum& probe : spectrum.probes) {
    json["ritz"].push_back({{"probe", json["ritz"].size()},
                            {"steps", probe.steps},
                            {"exhausted", probe.exhausted},
                            {"rounding", probe.rounding},
                            {"values", probe.ritz.values},
                            {"weights", probe.ritz.weights},
                            {"residuals", probe.ritz.residuals}});
  }
}

Spectrum spectrum_of(const Json& json) {
  Spectrum spectrum;
  get(json, "max", spectrum.max);
  get(json, "min", spectrum.min);
  get(json, "trace", spectrum.trace);
  get(json, "frobenius", spectrum.frobenius);
  spectrum.zero_band = number_of(json.at("mass").at("zero_band"));
  get(json["mass"], "negative", spectrum.negative);
  get(json["mass"], "positive", spectrum.positive);
  for (const auto& [share, value] : json.at("quantiles").items())
    spectrum.quantiles.emplace_back(std::stod(share), number_of(value));
  const Json& density = json.at("density");
  spectrum.density = {number_of(density.at("sigma")), numbers_of(density.at("x")), numbers_of(density.at("y")),
                      numbers_of(density.at("low")), numbers_of(density.at("high"))};
  if (json.contains("asymmetry")) {
    spectrum.asymmetry = number_of(json["asymmetry"]);
    spectrum.eigenvalues = numbers_of(json.at("eigenvalues"));
    return spectrum;
  }
  for (const Json& probe : json.at("ritz")) {
    spectrum.probes.push_back(
        {probe.at("steps"),
         probe.at("exhausted"),
         number_of(probe.at("rounding")),
         {numbers_of(probe.at("values")), numbers_of(probe.at("weights")), numbers_of(probe.at("residuals"))}});
  }
  return spectrum;
}

BlockSpectrum block_of(const Json& json) {
  const std::string name = json.at("name");
  const std::optional<LayerId> id = LayerId::parse(name);
  if (!id) throw Error(fmt::format("the spectrum has a block '{}', which is not a layer", name));
  return {*id, json.at("parameters"), spectrum_of(json)};
}

}  // namespace

Json to_json(const SpectrumReport& report) {
  Json json = make_document("spectrum", 1);
  json["method"] = report.lanczos ? "lanczos" : "dense";
  json["dtype"] = report.type == at::kDouble ? "float64" : "float32";
  json["parameters"] = report.parameters;
  json["tokens"] = report.tokens;
  json["label_smoothing"] = report.label_smoothing;
  json["loss"] = report.loss;
  json["gradient_norm"] = report.gradient_norm;
  if (report.lanczos) {
    json["steps"] = report.lanczos->steps;
    json["probes"] = report.lanczos->probes;
    json["seed"] = report.lanczos->seed;
  }
  if (report.whole) {
    put(json, *report.whole);
  } else {
    json["blocks"] = Json::array();
    for (const BlockSpectrum& block : report.blocks) {
      Json entry = {{"name", to_string(block.id)}, {"parameters", block.parameters}};
      put(entry, block.spectrum);
      json["blocks"].push_back(std::move(entry));
    }
  }
  json["micro_batches"] = report.micro_batches;
  json["graphs_kept"] = report.graphs_kept;
  json["products"] = report.products;
  json["threads"] = report.threads;
  json["processes"] = report.processes;
  json["gradient_seconds"] = report.gradient_seconds;
  json["hvp_seconds"] = report.hvp_seconds;
  json["seconds"] = report.seconds;
  return json;
}

void from_json(const Json& json, SpectrumReport& report) {
  report = {};
  report.type = json.at("dtype") == "float64" ? at::kDouble : at::kFloat;
  report.parameters = json.at("parameters");
  report.tokens = json.at("tokens");
  report.label_smoothing = number_of(json.at("label_smoothing"));
  report.loss = number_of(json.at("loss"));
  report.gradient_norm = number_of(json.at("gradient_norm"));
  if (json.at("method") == "lanczos") report.lanczos = {json.at("steps"), json.at("probes"), json.at("seed")};
  if (json.contains("blocks")) {
    for (const Json& block : json["blocks"]) report.blocks.push_back(block_of(block));
  } else {
    report.whole = spectrum_of(json);
  }
  report.micro_batches = json.at("micro_batches");
  report.graphs_kept = json.at("graphs_kept");
  report.products = json.at("products");
  report.threads = json.at("threads");
  report.processes = json.value("processes", int64_t{1});  // absent in documents of earlier versions
  report.gradient_seconds = number_of(json.at("gradient_seconds"));
  report.hvp_seconds = number_of(json.at("hvp_seconds"));
  report.seconds = number_of(json.at("seconds"));
}

}  // namespace plumb
