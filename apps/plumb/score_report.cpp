#include "score_report.h"

#include <fmt/format.h>

#include "plumb/base/text.h"

namespace plumb::app {
namespace {

// BLEU|nrefs:1|… = 31.2 (μ = 31.1 ± 1.0) 63.0/38.2/24.9/16.8 (BP = …)
std::string score_line(const MetricScores& metric, const SystemScore& system) {
  std::string line = fmt::format("{}|{} = {:.1f}", metric.name, metric.signature, system.score);
  if (system.interval)
    line += fmt::format(" (μ = {:.1f} ± {:.1f})", system.interval->mean, system.interval->half_width());
  return line + system.details.text + '\n';
}

using Rows = std::vector<std::vector<std::string>>;

// One row per system, one column per metric.
std::string table_of_scores(const ScoreReport& report) {
  Rows rows = {{"system"}};
  for (const std::string& system : report.systems) rows.push_back({system});
  std::string signatures;
  for (const MetricScores& metric : report.metrics) {
    rows[0].push_back(metric.name);
    for (size_t i = 0; i < metric.systems.size(); ++i) {
      rows[i + 1].push_back(fmt::format("{:.1f}", metric.systems[i].score));
    }
    signatures += metric.name + '|' + metric.signature + '\n';
  }
  return aligned(rows, 1) + '\n' + signatures;
}

std::string interval_cell(const std::optional<SampleInterval>& interval) {
  return interval ? fmt::format("[{:.1f}, {:.1f}]", interval->low, interval->high) : "";
}

// One row per system, with the intervals and the comparison of one metric.
std::string table_of_metric(const ScoreReport& report, const MetricScores& metric) {
  const bool paired = !report.paired.empty();
  const bool intervals = metric.systems.front().interval.has_value();
  Rows rows = {{"system", "score"}};
  if (intervals) rows[0].emplace_back("95% interval");
  if (paired) rows[0].emplace_back("difference");
  if (paired && intervals) rows[0].emplace_back("95% interval");
  if (paired) rows[0].emplace_back("p");
  for (size_t i = 0; i < report.systems.size(); ++i) {
    const SystemScore& system = metric.systems[i];
    std::vector<std::string>& row = rows.emplace_back();
    row = {report.systems[i], fmt::format("{:.1f}", system.score)};
    if (intervals) row.push_back(interval_cell(system.interval));
    if (!system.comparison) continue;
    row.push_back(fmt::format("{:+.1f}", system.comparison->difference));
    if (intervals) row.push_back(interval_cell(system.comparison->interval));
    row.push_back(fmt::format("{:.4f}", system.comparison->p_value));
  }
  return fmt::format("{}|{}\n", metric.name, metric.signature) + aligned(rows, 1);
}

std::string description_of_test(const ScoreReport& report) {
  if (report.paired.empty()) return "";
  const bool bootstrap = report.paired == "bootstrap";
  return fmt::format("\nDifferences and p: against {}, by {} with {} {}.\n", report.systems.front(),
                     bootstrap ? "paired bootstrap" : "approximate randomization",
                     with_thousands(bootstrap ? report.samples.value() : report.trials.value()),
                     bootstrap ? "samples" : "trials");
}

// Tab-separated: the number of the sentence, then its scores.
std::string table_of_sentences(const ScoreReport& report) {
  const size_t sentences = report.metrics.front().systems.front().sentences.size();
  if (sentences == 0) return "";
  std::string text = "line";
  for (const std::string& system : report.systems) {
    for (const MetricScores& metric : report.metrics) {
      text += '\t' + (report.systems.size() > 1 ? system + ' ' : "") + metric.name;
    }
  }
  text += '\n';
  for (size_t line = 0; line < sentences; ++line) {
    text += std::to_string(line + 1);
    for (size_t system = 0; system < report.systems.size(); ++system) {
      for (const MetricScores& metric : report.metrics) {
        text += fmt::format("\t{:.1f}", metric.systems[system].sentences[line]);
      }
    }
    text += '\n';
  }
  return text + '\n';
}

Json interval_json(const SampleInterval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

Json system_json(const SystemScore& system) {
  Json json = {{"score", system.score}};
  json.update(system.details.keys);
  if (system.interval) json["interval"] = interval_json(*system.interval);
  if (system.comparison) {
    json["difference"] = system.comparison->difference;
    if (system.comparison->interval) json["difference_interval"] = interval_json(*system.comparison->interval);
    json["p_value"] = system.comparison->p_value;
  }
  if (!system.sentences.empty()) json["sentences"] = system.sentences;
  return json;
}

// Puts the keys of the first system at the top of the document.
void add_first_system(Json& json, const MetricScores& metric) {
  const SystemScore& first = metric.systems.front();
  json[metric.key] = first.score;
  if (metric.key == "bleu") {  // the usual metric, whose keys have no prefix
    json.update(first.details.keys);
    json["signature"] = metric.signature;
    return;
  }
  json[metric.key + "_name"] = metric.name;
  json[metric.key + "_signature"] = metric.signature;
}

}  // namespace

std::string text_of(const ScoreReport& report) {
  std::string text = table_of_sentences(report);
  const bool intervals = report.metrics.front().systems.front().interval.has_value();
  if (report.systems.size() == 1) {
    for (const MetricScores& metric : report.metrics) text += score_line(metric, metric.systems.front());
    return text;
  }
  if (report.paired.empty() && !intervals) return text + table_of_scores(report);
  for (const MetricScores& metric : report.metrics) {
    if (&metric != report.metrics.data()) text += '\n';
    text += table_of_metric(report, metric);
  }
  return text + description_of_test(report);
}

Json document(const ScoreReport& report) {
  Json result = make_document("score", 1);
  for (const MetricScores& metric : report.metrics) add_first_system(result, metric);
  result["metrics"] = Json::array();
  for (const MetricScores& metric : report.metrics) {
    result["metrics"].push_back({{"metric", metric.key}, {"name", metric.name}, {"signature", metric.signature}});
  }
  if (!report.paired.empty()) result["paired"] = report.paired;
  if (report.samples) result["samples"] = *report.samples;
  if (report.trials) result["trials"] = *report.trials;
  if (report.samples || report.trials) result["seed"] = report.seed;
  result["systems"] = Json::array();
  for (size_t i = 0; i < report.systems.size(); ++i) {
    Json system = {{"name", report.systems[i]}};
    for (const MetricScores& metric : report.metrics) system[metric.key] = system_json(metric.systems[i]);
    result["systems"].push_back(std::move(system));
  }
  return result;
}

}  // namespace plumb::app
