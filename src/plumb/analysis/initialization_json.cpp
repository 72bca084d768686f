#include "plumb/analysis/initialization_json.h"

#include "plumb/base/json_fields.h"

namespace plumb {
namespace {

Json gains_json(const BackwardGainReport& report) {
  Json json;
  json["stacks"] = Json::array();
  for (const BackwardGainReport::Stack& stack : report.stacks) {
    Json entry = {{"stack", to_string(stack.stack)}, {"input_gradient", described_json(stack.input_gradient)}};
    entry["parts"] = Json::array();
    for (const BackwardGainReport::Part& part : stack.parts) {
      entry["parts"].push_back({{"name", to_string(part.point)},
                                {"layer", part.point.id.number()},
                                {"gradient", described_json(part.gradient)},
                                {"gain", described_json(part.gain)},
                                {"memory_gain", part.memory_gain ? described_json(*part.memory_gain) : Json()}});
    }
    json["stacks"].push_back(std::move(entry));
  }
  json["error"] = report.error;
  return json;
}

Json first_step_json(const FirstStepReport& report) {
  Json json;
  json["optimizer"] = report.optimizer;
  json["logit_change"] = described_json(report.logits.total);
  json["logit_change_by_layer"] = Json::array();
  for (const LogitChangesReport::Layer& layer : report.logits.by_layer)
    json["logit_change_by_layer"].push_back(
        {{"name", layer.layer ? Json(to_string(*layer.layer)) : Json()}, {"change", described_json(layer.change)}});
  json["critical_rate"] = described_json(report.critical_rate);
  json["without_rate"] = report.without_rate;
  json["passes"] = report.passes;
  json["momentum_gain"] = report.momentum_gain;
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
  if (report.curvature) json["curvature"] = described_json(*report.curvature);
  return json;
}

}  // namespace plumb
