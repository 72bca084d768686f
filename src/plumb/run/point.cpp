#include "plumb/run/point.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/trouble/record_fields.h"

namespace plumb {
namespace {

constexpr EnumNames<RunOutcome, 5> kOutcomes = {{{RunOutcome::finished, "finished"},
                                                 {RunOutcome::diverged, "diverged"},
                                                 {RunOutcome::stopped, "stopped"},
                                                 {RunOutcome::averaged, "averaged"},
                                                 {RunOutcome::imported, "imported"}}};

/// The exponential of a negative log-likelihood, for those who read the document.
void perplexity(Fields& field, std::string_view key, const std::optional<double>& nll) {
  std::optional<double> value = nll ? std::optional(std::exp(*nll)) : std::nullopt;
  field(key, value);
}

void metrics_by_name(Fields& field, Metrics& metrics) {
  NamedNumbers values(metrics.begin(), metrics.end());
  field("metrics", values);
  metrics = {};
  for (const auto& [name, value] : values) metrics.set(name, value);
}

}  // namespace

std::string to_string(RunOutcome outcome) { return name_of(outcome, kOutcomes); }

void describe(Fields& field, TrainPoint& point) {
  count(field, "step", point.step);
  count(field, "epoch", point.epoch);
  field("epochs", point.epochs);
  field("learning_rate", point.learning_rate);
  field("loss", point.loss);
  field("nll", point.nll);
  perplexity(field, "train_perplexity", point.nll);
  field("gradient_norm", point.gradient_norm);
  field("tokens_per_second", point.tokens_per_second);
  count(field, "tokens", point.tokens);
  field("ceiling_fraction", point.ceiling_fraction);
  metrics_by_name(field, point.metrics);
  perplexity(field, "valid_perplexity", point.metrics.get("valid_nll"));
  field("data_seconds", point.data_seconds);
  field("exchange_seconds", point.exchange_seconds);
  field("exchange_bytes", point.exchange_bytes);
  field("skipped_steps", point.skipped_steps);
}

Metrics last_metrics(const std::vector<TrainPoint>& history) {
  Metrics metrics;
  for (const TrainPoint& point : history) metrics.set(point.metrics);
  return metrics;
}

Json to_json(const WatchRecord& record) {
  Json watches = Json::object();
  for (const auto& [name, measurement] : record.watches) {
    Json values = measurement.error.empty() ? measurement.values : Json::object({{"error", measurement.error}});
    values["seconds"] = measurement.seconds;
    watches[name] = std::move(values);
  }
  return {{"step", record.step}, {"watch", std::move(watches)}};
}

WatchRecord watch_record_from_json(const Json& json) {
  WatchRecord record{to_count(json.at("step")), {}};
  const Json& all = json.at("watch");
  if (!all.is_object()) throw Error(fmt::format("the record of the watches at step {} is not an object", record.step));
  for (const auto& [name, values] : all.items()) {
    WatchMeasurement measurement;
    JsonReader reader(values);
    reader("seconds", measurement.seconds);
    if (values.contains("error")) {
      reader("error", measurement.error);
    } else {
      measurement.values = values;
      measurement.values.erase("seconds");
    }
    record.watches.emplace(name, std::move(measurement));
  }
  return record;
}

void describe(Fields& field, BestEvaluation& best) {
  field("metric", best.metric);
  field("value", best.value);
  count(field, "step", best.step);
}

void describe(Fields& field, TrainResult& result) {
  named(field, "outcome", result.outcome, kOutcomes);
  count(field, "steps", result.steps);
  metrics_by_name(field, result.metrics);
  perplexity(field, "perplexity", result.valid_nll());
  field.section("best", result.best);
  field("seconds", result.seconds);
  field.section("learning", result.learning);
  field("diagnosis", result.diagnosis);
  field.sections("troubles", result.troubles);
  field.sections("history", result.history);
}

Json TrainResult::to_json() const {
  Json json = make_document("train", 1);
  json.update(described_json(*this));
  for (const WatchRecord& record : watched) json["watched"].push_back(plumb::to_json(record));
  return json;
}

TrainResult TrainResult::from_json(const Json& json) {
  auto result = from_described_json<TrainResult>(json);
  if (json.contains("watched"))
    for (const Json& record : json["watched"]) result.watched.push_back(watch_record_from_json(record));
  return result;
}

}  // namespace plumb
