#include "plumb/report/runs_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "plumb/base/text.h"
#include "plumb/nn/layer_id.h"
#include "plumb/report/report_parts.h"
#include "plumb/run/run_table.h"

namespace plumb {
namespace {

constexpr size_t kMostTogether = 3;  // the most runs whose training and validation losses share a figure
constexpr double kSecondsPerHour = 3600;

using PointNumber = std::function<std::optional<double>(const RunSummary&, size_t)>;

/// The horizontal axis of a curve.
struct Abscissa {
  std::string id, label, by;
  PointNumber at;
};

std::vector<Abscissa> abscissas() {
  return {{"step", "step", "by step",
           [](const RunSummary& run, size_t i) { return static_cast<double>(run.history[i].step); }},
          {"tokens", "target tokens", "by tokens",
           [](const RunSummary& run, size_t i) { return static_cast<double>(run.history[i].tokens); }},
          {"time", "hours of training, evaluation excluded", "by time",
           [times = std::map<const RunSummary*, std::vector<std::optional<double>>>()](const RunSummary& run,
                                                                                       size_t i) mutable {
             auto& own = times[&run];
             if (own.empty()) own = training_seconds(run.history);
             return own[i] ? std::optional(*own[i] / kSecondsPerHour) : std::nullopt;
           }}};
}

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

PointNumber metric_of(const std::string& name) {
  return [name](const RunSummary& run, size_t i) { return run.history[i].metrics.get(name); };
}

/// A curve over the points that have both coordinates. A diverged run's curve ends in a gap, which the page marks.
Series curve(const RunSummary& run, const Abscissa& x, const PointNumber& y, const std::string& suffix = "") {
  Series series{run.name + suffix, run.name};
  for (size_t i = 0; i < run.history.size(); ++i) {
    const auto at = x.at(run, i), value = y(run, i);
    if (at && value) series.point(*at, *value);
  }
  if (run.outcome == "diverged" && !series.x.empty()) {
    const auto end = x.at(run, run.history.size() - 1);
    series.point(end ? Json(*end) : series.x.back(), std::nan(""));
  }
  return series;
}

/// Adds a figure with a curve for each run that has one, unless none has.
void add_curves(std::vector<Figure>& figures, Figure figure, const std::vector<RunSummary>& runs, const Abscissa& x,
                const PointNumber& y) {
  figure.kind = "line";
  figure.x = {x.label};
  for (const RunSummary& run : runs) {
    Series series = curve(run, x, y);
    if (!series.x.empty()) figure.series.push_back(std::move(series));
  }
  if (!figure.series.empty()) figures.push_back(std::move(figure));
}

/// Training and validation loss: in one figure for few runs, otherwise in two.
void add_losses(std::vector<Figure>& figures, const std::vector<RunSummary>& runs, const Abscissa& x) {
  const PointNumber training = [](const RunSummary& run, size_t i) { return finite(run.history[i].nll); };
  const PointNumber validation = metric_of("valid_nll");
  const Axis loss = {"nats per token"};
  if (runs.size() > kMostTogether) {
    const auto figure = [&](const char* id, const char* what, const char* caption) {
      return Figure{fmt::format("{}_{}", id, x.id), fmt::format("{} {}", what, x.by), caption, "line", {}, loss};
    };
    add_curves(figures, figure("validation", "Validation loss", "Negative log-likelihood on the validation split."),
               runs, x, validation);
    add_curves(figures, figure("training", "Training loss", "Mean negative log-likelihood since the last point."), runs,
               x, training);
    return;
  }
  Figure figure{"loss_" + x.id,
                "Loss " + x.by,
                "Negative log-likelihood: of training, the mean since the last point; dashed: on the validation split.",
                "line",
                {x.label},
                loss};
  for (const RunSummary& run : runs) {
    for (const bool validating : {false, true}) {
      Series series = curve(run, x, validating ? validation : training, validating ? ", validation" : ", training");
      if (validating) series.style = "dashed";
      if (!series.x.empty()) figure.series.push_back(std::move(series));
    }
  }
  if (!figure.series.empty()) figures.push_back(std::move(figure));
}

/// The task's own metrics, in order of first appearance.
std::vector<std::string> task_metrics(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) {
      if (!name.starts_with("valid_") && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  return names;
}

/// What the watches of one run measured, as in its metrics.jsonl: (step, values by watch).
using WatchedValues = std::vector<std::pair<int64_t, Json>>;

WatchedValues watched_values(const RunSummary& run) {
  WatchedValues values;
  for (const WatchRecord& record : run.watched) values.emplace_back(record.step, to_json(record).at("watch"));
  return values;
}

/// The paths of all numbers in the runs' watch records except "seconds"; an object with one number per layer is one.
struct WatchedNumbers {
  std::vector<std::string> single;    // "/updates/total"
  std::vector<std::string> by_layer;  // "/updates/ratio"
};

bool is_by_layer(const Json& values) {
  return std::any_of(values.items().begin(), values.items().end(), [](const auto& entry) {
    return entry.value().is_number() && (LayerId::parse(entry.key()) || LayerId::of_parameter(entry.key()));
  });
}

/// A key as part of a JSON pointer (RFC 6901).
std::string pointer_part(const std::string& key) {
  std::string part;
  for (const char c : key) c == '~' ? part += "~0" : c == '/' ? part += "~1" : part += c;
  return part;
}

void collect(const Json& values, const std::string& path, WatchedNumbers& found, std::set<std::string>& known) {
  for (const auto& [key, value] : values.items()) {
    const std::string inner = path + "/" + pointer_part(key);
    if (value.is_number() && key != "seconds") {
      if (known.insert(inner).second) found.single.push_back(inner);
    } else if (value.is_object() && is_by_layer(value)) {
      if (known.insert(inner).second) found.by_layer.push_back(inner);
    } else if (value.is_object()) {
      collect(value, inner, found, known);
    }
  }
}

std::string title_of(const std::string& path) {
  std::string title;
  for (Json::json_pointer rest(path); !rest.empty(); rest.pop_back())
    title = rest.back() + (title.empty() ? "" : ", ") + title;
  if (title.empty()) return title;
  std::replace(title.begin(), title.end(), '_', ' ');
  title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  return title;
}

/// The value at a path through objects, or null.
const Json* find_value(const Json& values, const Json::json_pointer& path) {
  if (path.empty()) return &values;
  const Json* parent = find_value(values, path.parent_pointer());
  if (parent == nullptr || !parent->is_object()) return nullptr;
  const auto found = parent->find(path.back());
  return found == parent->end() ? nullptr : &*found;
}

/// The number at a path of a record; the largest number of an object with one per layer.
std::optional<double> watched_number(const Json& values, const std::string& path) {
  const Json* value = find_value(values, Json::json_pointer(path));
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  std::optional<double> largest;
  if (!value->is_object()) return largest;
  for (const Json& each : *value) {
    if (each.is_number() && (!largest || each.get<double>() > *largest)) largest = each.get<double>();
  }
  return largest;
}

/// One curve per run; for a single run, numbers by layer become one curve per layer.
Figure watched_figure(const std::vector<RunSummary>& runs, const std::vector<WatchedValues>& watched,
                      const std::string& path, bool by_layer) {
  Figure figure{"watch" + path, title_of(path), by_layer ? "The largest of all layers." : "", "line", {"step"}};
  std::replace(figure.id.begin(), figure.id.end(), '/', '_');
  if (!by_layer || runs.size() > 1) {
    for (size_t i = 0; i < runs.size(); ++i) {
      Series series{runs[i].name, runs[i].name};
      for (const auto& [step, values] : watched[i]) {
        if (const auto value = watched_number(values, path)) series.point(step, *value);
      }
      if (!series.x.empty()) figure.series.push_back(std::move(series));
    }
    return figure;
  }
  figure.caption = "By layer.";
  const Json::json_pointer pointer(path);
  std::map<std::string, size_t> places;
  for (const auto& [step, all] : watched.front()) {
    const Json* values = find_value(all, pointer);
    if (values == nullptr || !values->is_object()) continue;
    for (const auto& [layer, value] : values->items()) {
      if (!value.is_number()) continue;
      const auto [place, added] = places.try_emplace(layer, figure.series.size());
      if (added) figure.series.push_back({layer, layer});
      figure.series[place->second].point(step, value.get<double>());
    }
  }
  return figure;
}

void add_watched(std::vector<Figure>& figures, const std::vector<RunSummary>& runs) {
  WatchedNumbers found;
  std::set<std::string> known;
  std::vector<WatchedValues> watched;
  for (const RunSummary& run : runs) {
    watched.push_back(watched_values(run));
    for (const auto& [step, values] : watched.back()) collect(values, "", found, known);
  }
  for (const std::string& path : found.single) figures.push_back(watched_figure(runs, watched, path, false));
  for (const std::string& path : found.by_layer) figures.push_back(watched_figure(runs, watched, path, true));
}

std::vector<Figure> runs_figures(const std::vector<RunSummary>& runs) {
  std::vector<Figure> figures;
  const std::vector<Abscissa> all = abscissas();
  for (const Abscissa& x : all) add_losses(figures, runs, x);
  const Abscissa& step = all.front();
  for (const std::string& name : task_metrics(runs))
    add_curves(figures,
               {"metric_" + name,
                name == "bleu" ? "BLEU" : title_of("/" + pointer_part(name)),
                "On the validation split.",
                "",
                {},
                {name}},
               runs, step, metric_of(name));
  add_curves(figures, {"learning_rate", "Learning rate", "", "", {}, {"learning rate"}}, runs, step,
             [](const RunSummary& run, size_t i) { return finite(run.history[i].learning_rate); });
  add_curves(
      figures,
      {"gradient_norm", "Gradient norm", "Global norm of single steps, before clipping.", "", {}, {"norm", true}}, runs,
      step, [](const RunSummary& run, size_t i) { return run.history[i].gradient_norm; });
  add_curves(figures, {"throughput", "Target tokens per second", "Evaluation excluded.", "", {}, {"tokens per second"}},
             runs, step, [](const RunSummary& run, size_t i) { return finite(run.history[i].tokens_per_second); });
  add_watched(figures, runs);
  return figures;
}

Table runs_table(const std::vector<RunSummary>& runs) {
  Table table{"runs", "Runs",
              "First the settings in which the runs differ. Losses are in nats per token, the time is in seconds; the "
              "step is the last that is recorded."};
  const std::vector<RunColumn> columns = run_columns(runs);
  for (const RunColumn& column : columns) table.columns.push_back(column.is_time ? "seconds" : column.name);
  for (const RunSummary& run : runs) {
    Json row = Json::array();
    for (const RunColumn& column : columns) row.push_back(column.value(run));
    table.rows.push_back(row);
  }
  return table;
}

/// The settings that all runs share, by section.
Json shared_settings(const std::vector<RunSummary>& runs) {
  Json groups = Json::array();
  const std::vector<std::string> differing = differing_keys(runs);
  const auto first = std::find_if(runs.begin(), runs.end(), [](const auto& run) { return !run.settings.empty(); });
  if (first == runs.end()) return groups;
  for (const auto& [key, value] : first->settings) {
    if (std::find(differing.begin(), differing.end(), key) != differing.end()) continue;
    const size_t point = key.rfind('.');
    const std::string section = key.substr(0, point);
    if (groups.empty() || groups.back()["group"] != section)
      groups.push_back({{"group", section}, {"items", Json::array()}});
    groups.back()["items"].push_back({key.substr(point + 1), value});
  }
  return groups;
}

Json runs_summary(const std::vector<RunSummary>& runs) {
  Json sentences = Json::array();
  std::map<std::string, int> outcomes;
  const RunSummary* best = nullptr;
  for (const RunSummary& run : runs) {
    ++outcomes[run.outcome];
    if (run.best_valid_nll && (best == nullptr || *run.best_valid_nll < *best->best_valid_nll)) best = &run;
  }
  std::vector<std::string> counts;
  for (const auto& [outcome, count] : outcomes) counts.push_back(fmt::format("{} {}", count, outcome));
  if (runs.size() == 1) {
    const RunSummary& run = runs.front();
    sentences.push_back(fmt::format("The run is {} at step {}{}.", run.outcome, with_thousands(run.step),
                                    run.seconds ? " after " + duration(*run.seconds) : ""));
  } else {
    sentences.push_back(fmt::format("{} runs: {}.", runs.size(), join(counts)));
  }
  if (best != nullptr) {
    sentences.push_back(fmt::format("Best validation loss: {:.4f} nats per token (perplexity {:.4g}) at step {}{}.",
                                    *best->best_valid_nll, std::exp(*best->best_valid_nll),
                                    with_thousands(best->best_step), runs.size() > 1 ? ", of " + best->name : ""));
  }
  for (const RunSummary& run : runs) {
    if (!run.trouble.empty()) sentences.push_back(fmt::format("{}: {}.", run.name, run.trouble));
  }
  return sentences;
}

}  // namespace

Json runs_report(const std::vector<RunSummary>& runs) {
  Json report = make_document("study", 1);
  report["title"] = runs.size() == 1 ? runs.front().name : fmt::format("{} training runs", runs.size());
  report["subtitle"] = "";
  report["created"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report["plumb_version"] = PLUMB_VERSION;
  report["summary"] = runs_summary(runs);
  report["settings"] = shared_settings(runs);
  report["figures"] = Json::array();
  for (const Figure& figure : runs_figures(runs)) report["figures"].push_back(figure.to_json());
  report["tables"] = Json::array({runs_table(runs).to_json()});
  return report;
}

}  // namespace plumb
