#include "plumb/run/point.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "plumb/base/error.h"

namespace plumb {
namespace {

// JSON has no nonfinite numbers: they become null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

/// Writes the fields that visit() shows it.
class PointWriter {
 public:
  void operator()(const char* key, int64_t value) { json_[key] = value; }
  void operator()(const char* key, double value) { json_[key] = number(value); }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }
  /// A value that follows from the others.
  void derived(const char* key, const std::optional<double>& value) { (*this)(key, value); }
  void metrics(const Metrics& metrics) {
    for (const auto& [name, value] : metrics) json_[name] = number(value);
  }
  [[nodiscard]] const Json& json() const { return json_; }

 private:
  Json json_;
};

/// Reads the fields that visit() shows it. The metrics are the numbers whose keys are none of these fields.
class PointReader {
 public:
  explicit PointReader(const Json& json) : json_(json) {}

  void operator()(const char* key, int64_t& value) {
    if (const Json* found = find(key)) value = count_of(*found);
  }
  void operator()(const char* key, double& value) {
    const Json* found = find(key);
    value = found != nullptr ? number(*found) : std::numeric_limits<double>::quiet_NaN();
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (find(key) != nullptr) (*this)(key, value.emplace());
  }
  void derived(const char* key, const std::optional<double>&) { (void)find(key); }
  void metrics(Metrics& metrics) { metrics_ = &metrics; }
  void finish() {
    for (const auto& [key, value] : json_.items()) {
      if ((value.is_number() || value.is_null()) && !fields_.contains(key)) metrics_->set(key, number(value));
    }
  }

 private:
  const Json* find(const char* key) {
    fields_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  std::set<std::string> fields_;
  Metrics* metrics_ = nullptr;
};

std::optional<double> perplexity(const std::optional<double>& nll) {
  return nll ? std::optional(std::exp(*nll)) : std::nullopt;
}

/// Shows all fields of a point to a writer or a reader, in the order of the file.
template <typename Visitor, typename Point>
void visit(Visitor& field, Point& point) {
  field("step", point.step);
  field("epoch", point.epoch);
  field("learning_rate", point.learning_rate);
  field("loss", point.loss);
  field("nll", point.nll);
  field.derived("train_perplexity", perplexity(point.nll));
  field("gradient_norm", point.gradient_norm);
  field("tokens_per_second", point.tokens_per_second);
  field("tokens", point.tokens);
  field("ceiling_fraction", point.ceiling_fraction);
  field.metrics(point.metrics);
  field.derived("valid_perplexity", perplexity(point.metrics.get("valid_nll")));
  field("data_seconds", point.data_seconds);
  field("exchange_seconds", point.exchange_seconds);
  field("exchange_bytes", point.exchange_bytes);
  field("skipped_steps", point.skipped_steps);
}

constexpr const char* kBest = "best_";  // followed by the name of train.best_metric
constexpr const char* kBestLoss = "best_valid_nll";
constexpr const char* kBestStep = "best_step";

}  // namespace

Json to_json(const TrainPoint& point) {
  PointWriter writer;
  visit(writer, point);
  return writer.json();
}

TrainPoint point_from_json(const Json& json) {
  TrainPoint point;
  (void)json.at("step");
  PointReader reader(json);
  visit(reader, point);
  reader.finish();
  return point;
}

Metrics last_metrics(const std::vector<TrainPoint>& history) {
  Metrics metrics;
  for (const TrainPoint& point : history) metrics.set(point.metrics);
  return metrics;
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
  for (const auto& [name, value] : metrics) json[name] = number(value);
  if (valid_nll()) json["perplexity"] = number(std::exp(*valid_nll()));
  if (best_valid_nll) json[kBestLoss] = number(*best_valid_nll);
  if (best_value) json[kBest + best_value->first] = number(best_value->second);
  if (best_valid_nll || best_value) json[kBestStep] = best_step;
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
  if (json.contains(kBestLoss)) result.best_valid_nll = number(json[kBestLoss]);
  for (const auto& [key, value] : json.items()) {
    const bool is_number = value.is_number() || value.is_null();
    if (is_number && key.starts_with(kBest) && key != kBestLoss && key != kBestStep)
      result.best_value = {key.substr(std::string_view(kBest).size()), number(value)};
  }
  if (json.contains(kBestStep)) result.best_step = count_of(json[kBestStep]);
  result.seconds = json.value("seconds", 0.0);
  if (!json.at("history").is_array()) throw Error("the history of a result is not a list");
  for (const Json& point : json["history"]) result.history.push_back(point_from_json(point));
  result.metrics = last_metrics(result.history);  // those in the document are among other numbers
  for (const Json& record : json.value("watched", Json::array()))
    result.watched.push_back(watch_record_from_json(record));
  result.diagnosis = json.value("diagnosis", std::vector<std::string>());
  for (const Json& record : json.value("troubles", Json::array()))
    result.troubles.push_back(trouble_record_from_json(record));
  return result;
}

}  // namespace plumb
