#include "plumb/analysis/initialization_json.h"

#include <fmt/format.h>

#include "plumb/analysis/probe_json.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

LayerId layer_from(const std::string& name) {
  const std::optional<LayerId> id = LayerId::parse(name);
  if (!id) throw Error(fmt::format("'{}' is not a part of a model", name));
  return *id;
}

Json layer_or_null(const std::optional<LayerId>& layer) { return layer ? Json(to_string(*layer)) : Json(); }

Json extreme_json(const Extreme& extreme) { return {{"value", extreme.value}, {"error", extreme.error}}; }
Extreme extreme_from(const Json& json) { return {number_of(json.at("value")), number_of(json.at("error"))}; }

Json extremes_json(const Extremes& extremes) {
  return {{"max", extreme_json(extremes.max)}, {"min", extreme_json(extremes.min)}};
}
Extremes extremes_from(const Json& json) { return {extreme_from(json.at("max")), extreme_from(json.at("min"))}; }

Json split_json(const SplitExtremes& split) {
  return {{"hessian", extremes_json(split.hessian)},
          {"gauss_newton", extremes_json(split.gauss_newton)},
          {"rest", extremes_json(split.rest)}};
}
SplitExtremes split_from(const Json& json) {
  return {extremes_from(json.at("hessian")), extremes_from(json.at("gauss_newton")), extremes_from(json.at("rest"))};
}

Json value_json(const CurvatureSplitReport::Value& value) {
  Json json = to_json(value.over_seeds);
  json["error"] = value.error;
  return json;
}
Json report_split_json(const CurvatureSplitReport::Split& split) {
  const auto matrix = [](const CurvatureSplitReport::Matrix& one) {
    return Json{{"max", value_json(one.max)}, {"min", value_json(one.min)}};
  };
  return {
      {"hessian", matrix(split.hessian)}, {"gauss_newton", matrix(split.gauss_newton)}, {"rest", matrix(split.rest)}};
}

Json gains_json(const BackwardGainReport& report) {
  Json json;
  json["stacks"] = Json::array();
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    Json entry = {{"stack", to_string(stack.stack)}, {"input_gradient", to_json(stack.input_gradient)}};
    entry["parts"] = Json::array();
    for (const BackwardGainReport::Part& part : stack.parts) {
      entry["parts"].push_back({{"name", to_string(part.point)},
                                {"layer", part.point.id.number()},
                                {"gradient", to_json(part.gradient)},
                                {"gain", to_json(part.gain)},
                                {"memory_gain", part.memory_gain ? to_json(*part.memory_gain) : Json()}});
    }
    json["stacks"].push_back(std::move(entry));
  }
  json["error"] = report.error;
  return json;
}

Json first_step_json(const FirstStepReport& report) {
  Json json;
  json["optimizer"] = report.optimizer;
  json["logit_change"] = to_json(report.logits.total);
  json["logit_change_by_layer"] = Json::array();
  for (const LogitChangesReport::Layer& layer : report.logits.by_layer)
    json["logit_change_by_layer"].push_back({{"name", layer_or_null(layer.layer)}, {"change", to_json(layer.change)}});
  json["critical_rate"] = to_json(report.critical_rate);
  json["without_rate"] = report.without_rate;
  json["passes"] = report.passes;
  json["momentum_gain"] = report.momentum_gain;
  return json;
}

Json curvature_json(const CurvatureSplitReport& report) {
  Json json = report_split_json(report.whole);
  json["layers"] = Json::array();
  for (const CurvatureSplitReport::Layer& layer : report.layers) {
    Json entry = {{"name", to_string(layer.id)}, {"parameters", layer.parameters}};
    entry.update(report_split_json(layer.split));
    json["layers"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

Json to_json(const InitializationReport& report) {
  Json json = Json::object();
  if (report.gains) json["backward_gain"] = gains_json(*report.gains);
  if (!report.first_steps.empty()) {
    json["first_step"] = Json::array();
    for (const FirstStepReport& step : report.first_steps) json["first_step"].push_back(first_step_json(step));
  }
  if (report.curvature) json["curvature"] = curvature_json(*report.curvature);
  return json;
}

Json to_json(const BackwardGains& gains) {
  Json json;
  json["stacks"] = Json::array();
  for (const StackGains& stack : gains.stacks) {
    Json entry = {{"stack", to_string(stack.stack)}, {"input_gradient", stack.input_gradient}};
    entry["parts"] = Json::array();
    for (const BackwardGain& part : stack.parts) {
      entry["parts"].push_back({{"part", to_string(part.point.id)},
                                {"gradient", part.gradient},
                                {"gain", part.gain},
                                {"memory_gain", part.memory_gain ? Json(*part.memory_gain) : Json()}});
    }
    json["stacks"].push_back(std::move(entry));
  }
  json["error"] = gains.error;
  return json;
}

void from_json(const Json& json, BackwardGains& gains) {
  gains = {};
  for (const Json& entry : json.at("stacks")) {
    StackGains stack{layer_from(entry.at("stack")).stack, number_of(entry.at("input_gradient")), {}};
    for (const Json& part : entry.at("parts")) {
      const LayerId id = layer_from(part.at("part"));
      BackwardGain gain{
          {id, id.layer ? Point::stream : Point::result}, number_of(part.at("gradient")), number_of(part.at("gain"))};
      const bool reads_memory = id.sub_layer == SubLayerKind::cross_attention;
      if (reads_memory) gain.memory_gain = number_of(part.at("memory_gain"));
      stack.parts.push_back(gain);
    }
    gains.stacks.push_back(std::move(stack));
  }
  gains.error = number_of(json.at("error"));
}

Json to_json(const FirstStep& step) {
  Json json = {{"optimizer", step.optimizer},
               {"momentum_gain", step.momentum_gain},
               {"logit_change", step.logits.total}};
  json["by_layer"] = Json::array();
  for (const LogitChange& layer : step.logits.by_layer)
    json["by_layer"].push_back({{"layer", layer_or_null(layer.layer)}, {"change", layer.change}});
  json["critical"] = nullptr;
  if (step.critical) {
    json["critical"] = {{"low", step.critical->low}, {"high", step.critical->high}, {"passes", step.critical->passes}};
  }
  return json;
}

void from_json(const Json& json, FirstStep& step) {
  step = {};
  step.optimizer = json.at("optimizer");
  step.momentum_gain = number_of(json.at("momentum_gain"));
  step.logits.total = number_of(json.at("logit_change"));
  for (const Json& layer : json.at("by_layer")) {
    const Json& name = layer.at("layer");
    step.logits.by_layer.push_back(
        {name.is_null() ? std::nullopt : std::optional(layer_from(name)), number_of(layer.at("change"))});
  }
  const Json& critical = json.at("critical");
  if (critical.is_null()) return;
  step.critical = CriticalRate{number_of(critical.at("low")), number_of(critical.at("high")), critical.at("passes")};
}

Json to_json(const CurvatureSplit& split) {
  Json json = split_json(split.whole);
  json["layers"] = Json::array();
  for (const CurvatureSplit::Layer& layer : split.layers) {
    Json entry = {{"name", to_string(layer.id)}, {"parameters", layer.parameters}};
    entry.update(split_json(layer.extremes));
    json["layers"].push_back(std::move(entry));
  }
  return json;
}

void from_json(const Json& json, CurvatureSplit& split) {
  split = {split_from(json), {}};
  for (const Json& layer : json.at("layers"))
    split.layers.push_back({layer_from(layer.at("name")), layer.at("parameters"), split_from(layer)});
}

}  // namespace plumb
