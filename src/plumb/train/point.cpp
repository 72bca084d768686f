#include "plumb/train/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"

namespace plumb {
namespace {

// JSON has no nonfinite numbers: they become null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}
double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::numeric_limits<double>::quiet_NaN() : number(*found);
}

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = number(*value);
}
std::optional<double> maybe(const Json& json, const char* key) {
  return json.contains(key) ? std::optional(number(json, key)) : std::nullopt;
}

void put(Json& json, const Metrics& metrics) {
  for (const auto& [name, value] : metrics) json[name] = number(value);
}

/// All numbers (or nulls) whose keys are not among the document's own.
Metrics metrics_from(const Json& json, const std::vector<std::string>& own) {
  Metrics metrics;
  for (const auto& [key, value] : json.items()) {
    if (!(value.is_number() || value.is_null()) || std::find(own.begin(), own.end(), key) != own.end()) continue;
    metrics.set(key, number(value));
  }
  return metrics;
}

}  // namespace

Json to_json(const TrainPoint& point) {
  Json json;
  json["step"] = point.step;
  json["epoch"] = point.epoch;
  json["learning_rate"] = number(point.learning_rate);
  json["loss"] = number(point.loss);
  json["nll"] = number(point.nll);
  json["train_perplexity"] = number(std::exp(point.nll));
  put(json, "gradient_norm", point.gradient_norm);
  json["tokens_per_second"] = number(point.tokens_per_second);
  if (point.tokens) json["tokens"] = *point.tokens;
  put(json, "ceiling_fraction", point.ceiling_fraction);
  put(json, point.metrics);
  if (const auto nll = point.metrics.get("valid_nll")) json["valid_perplexity"] = number(std::exp(*nll));
  put(json, "data_seconds", point.data_seconds);
  put(json, "exchange_seconds", point.exchange_seconds);
  put(json, "exchange_bytes", point.exchange_bytes);
  put(json, "skipped_steps", point.skipped_steps);
  return json;
}

TrainPoint point_from_json(const Json& json) {
  TrainPoint point;
  point.step = count_of(json.at("step"));
  if (json.contains("epoch")) point.epoch = count_of(json["epoch"]);
  point.learning_rate = number(json, "learning_rate");
  point.loss = number(json, "loss");
  point.nll = number(json, "nll");
  point.gradient_norm = maybe(json, "gradient_norm");
  point.tokens_per_second = number(json, "tokens_per_second");
  point.ceiling_fraction = maybe(json, "ceiling_fraction");
  if (json.contains("tokens")) point.tokens = count_of(json["tokens"]);
  point.metrics =
      metrics_from(json, {"step", "epoch", "learning_rate", "loss", "nll", "gradient_norm", "tokens_per_second",
                          "tokens", "ceiling_fraction", "train_perplexity", "valid_perplexity", "data_seconds",
                          "exchange_seconds", "exchange_bytes", "skipped_steps"});
  point.data_seconds = maybe(json, "data_seconds");
  point.exchange_seconds = maybe(json, "exchange_seconds");
  point.exchange_bytes = maybe(json, "exchange_bytes");
  point.skipped_steps = maybe(json, "skipped_steps");
  return point;
}

Json to_json(const WatchRecord& record) { return {{"step", record.step}, {"watch", record.values}}; }

WatchRecord watch_record_from_json(const Json& json) {
  WatchRecord record{count_of(json.at("step")), json.at("watch")};
  if (!record.values.is_object())
    throw Error(fmt::format("the record of the watches at step {} is not an object", record.step));
  return record;
}

Json TrainResult::to_json() const {
  Json json = make_document("train", 1);
  json["outcome"] = outcome;
  json["steps"] = steps;
  put(json, metrics);
  if (valid_nll()) json["perplexity"] = number(std::exp(*valid_nll()));
  put(json, "best_valid_nll", best_valid_nll);
  if (best_value) json["best_" + best_value->first] = number(best_value->second);
  if (best_valid_nll || best_value) json["best_step"] = best_step;
  json["seconds"] = seconds;
  json["history"] = Json::array();
  for (const TrainPoint& point : history) json["history"].push_back(plumb::to_json(point));
  for (const WatchRecord& record : watched) json["watched"].push_back(plumb::to_json(record));
  if (!diagnosis.empty()) json["diagnosis"] = diagnosis;
  for (const TroubleRecord& record : troubles) json["troubles"].push_back(plumb::to_json(record));
  return json;
}

TrainResult TrainResult::from_json(const Json& json) {
  TrainResult result;
  result.outcome = json.at("outcome");
  result.steps = count_of(json.at("steps"));
  result.metrics = metrics_from(json, {"schema", "command", "outcome", "steps", "best_valid_nll", "best_step",
                                       "seconds", "history", "watched", "troubles", "diagnosis"});
  result.best_valid_nll = maybe(json, "best_valid_nll");
  for (const auto& [key, value] : json.items()) {
    const bool is_own = key == "best_valid_nll" || key == "best_step";
    if (key.starts_with("best_") && !is_own && value.is_number()) result.best_value = {key.substr(5), value};
  }
  if (json.contains("best_step")) result.best_step = count_of(json["best_step"]);
  result.seconds = json.value("seconds", 0.0);
  if (!json.at("history").is_array()) throw Error("the history of a result is not a list");
  for (const Json& point : json["history"]) result.history.push_back(point_from_json(point));
  for (const Json& record : json.value("watched", Json::array()))
    result.watched.push_back(watch_record_from_json(record));
  result.diagnosis = json.value("diagnosis", std::vector<std::string>());
  for (const Json& record : json.value("troubles", Json::array()))
    result.troubles.push_back(trouble_record_from_json(record));
  return result;
}

}  // namespace plumb
