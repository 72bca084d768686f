#include "plumb/analysis/probe_json.h"

#include <fmt/format.h>

#include <array>

#include "plumb/base/json_fields.h"

namespace plumb {
namespace {

Json pair_of(const Range& range) { return Json::array({range.low, range.high}); }

std::string matrix_name(int matrix) { return fmt::format("W{}", matrix); }

const char* name_of(theory::Placement placement) {
  constexpr std::array<const char*, 3> kNames = {"post-ln", "pre-ln", "other"};
  return kNames.at(static_cast<size_t>(placement));
}

Json to_json(const SignalReport& report) {
  Json json;
  json["name"] = to_string(report.point);
  json["layer"] = report.point.id.number();
  json["mean_square"] = described_json(report.mean_square);
  json["delta_at_0_1"] = described_json(report.delta_at_0_1);
  json["epsilon_at_0_125"] = described_json(report.epsilon_at_0_125);
  json["layer_norm_ratio"] = described_json(report.layer_norm_ratio);
  json["theory"] = nullptr;
  if (report.theory) {
    json["theory"] = {{"lemma_2", pair_of(report.theory->paper)}, {"adapted", pair_of(report.theory->adapted)}};
  }
  return json;
}

Json to_json(const BranchReport& report) {
  Json json;
  json["name"] = to_string(report.id);
  json["layer"] = report.id.number();
  json["ratio"] = described_json(report.ratio);
  json["similarity_before"] = described_json(report.similarity_before);
  json["similarity"] = described_json(report.similarity);
  json["predicted"] = nullptr;
  if (report.predicted)
    json["predicted"] = {{"ratio", report.predicted->ratio}, {"similarity", report.predicted->similarity}};
  return json;
}

Json to_json(const FeedForwardReport& report) {
  Json json;
  json["stack"] = to_string(report.layer.stack);
  json["layer"] = report.layer.number();
  json["matrix"] = matrix_name(report.matrix);
  json["parameter"] = report.parameter;
  json["gradient_norm"] = described_json(report.gradient_norm);
  json["batch_mean_gradient_norm"] = described_json(report.batch_mean_gradient_norm);
  return json;
}

Json to_json(const TheoryReport::Theorem1& theorem) {
  Json json;
  json["parameter"] = theorem.parameter;
  json["bound"] = theorem.bound;
  json["norm"] = described_json(theorem.norm);
  json["constant"] = described_json(theorem.constant);
  json["bounded_point"] = to_string(theorem.bounded_point);
  json["probability"] = theorem.probability;
  return json;
}

Json to_json(const TheoryReport::Slope& slope) {
  Json json;
  json["stack"] = to_string(slope.stack);
  json["matrix"] = matrix_name(slope.matrix);
  json["predicted"] = slope.predicted ? Json(*slope.predicted) : Json();
  json["slope"] = slope.fit.slope;
  json["slope_error"] = slope.fit.slope_error;
  json["intercept"] = slope.fit.intercept;
  json["r_squared"] = slope.fit.r_squared;
  json["over_seeds"] = described_json(slope.over_seeds);
  return json;
}

Json to_json(const TheoryReport& theory) {
  Json json;
  json["placement"] = name_of(theory.placement);
  json["setting"] = {{"holds", theory.differs.empty()}, {"differs", theory.differs}};
  json["theorem_1"] = theory.theorem_1 ? to_json(*theory.theorem_1) : Json();
  json["layer_slopes"] = Json::array();
  for (const TheoryReport::Slope& slope : theory.layer_slopes) json["layer_slopes"].push_back(to_json(slope));
  return json;
}

}  // namespace

Json to_json(const ProbeReport& report) {
  Json document = make_document("probe", 1);
  document["loss"] = report.loss.mean;
  document["loss_label_smoothing"] = report.loss_label_smoothing.mean;
  document["gradient_norm_total"] = report.gradient_norm_total.mean;
  document["gradient_norm"] = Json::object();
  for (const auto& [name, norm] : report.gradient_norm) document["gradient_norm"][name] = norm;
  document["intervals"]["loss"] = described_json(report.loss);
  document["intervals"]["loss_label_smoothing"] = described_json(report.loss_label_smoothing);
  document["intervals"]["gradient_norm_total"] = described_json(report.gradient_norm_total);
  document["signal"] = Json::array();
  for (const SignalReport& point : report.signal) document["signal"].push_back(to_json(point));
  document["branches"] = Json::array();
  for (const BranchReport& branch : report.branches) document["branches"].push_back(to_json(branch));
  document["feed_forward"] = Json::array();
  for (const FeedForwardReport& matrix : report.feed_forward) document["feed_forward"].push_back(to_json(matrix));
  document["theory"] = to_json(report.theory);
  document["seeds"] = report.seeds;
  document["label_smoothing"] = report.label_smoothing;
  return document;
}

}  // namespace plumb
