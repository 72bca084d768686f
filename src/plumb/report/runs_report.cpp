#include "plumb/report/runs_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <optional>

#include "plumb/base/text.h"
#include "plumb/nn/layer_id.h"
#include "plumb/report/report_parts.h"
#include "plumb/report/seed_table.h"
#include "plumb/run/run_table.h"

namespace plumb {
namespace {

constexpr size_t kMostTogether = 3;  // the most runs whose training and validation losses share a figure
constexpr double kSecondsPerHour = 3600;

using PointNumber = std::function<std::optional<double>(const TrainPoint&)>;
using Numbers = std::vector<std::optional<double>>;  // of a run, by point of its history

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

PointNumber metric_of(const std::string& name) {
  return [name](const TrainPoint& point) { return point.metrics.get(name); };
}

Numbers numbers_of(const RunSummary& run, const PointNumber& number) {
  Numbers numbers;
  for (const TrainPoint& point : run.history) numbers.push_back(number(point));
  return numbers;
}

/// The horizontal axis of a curve.
struct Abscissa {
  std::string id, label;
  std::function<Numbers(const RunSummary&)> of;
};

std::vector<Abscissa> abscissas() {
  const auto number = [](int64_t TrainPoint::*count) {
    return [count](const RunSummary& run) {
      return numbers_of(run, [count](const TrainPoint& point) { return static_cast<double>(point.*count); });
    };
  };
  return {{"step", "step", number(&TrainPoint::step)},
          {"tokens", "target tokens", number(&TrainPoint::tokens)},
          {"time", "hours of training, evaluation excluded", [](const RunSummary& run) {
             Numbers times = training_seconds(run.history);
             for (std::optional<double>& time : times) time = time ? std::optional(*time / kSecondsPerHour) : time;
             return times;
           }}};
}

/// Adds a curve over the points that have both coordinates, if there are any. A diverged run's curve ends in a gap,
/// which the page marks.
void add_curve(Figure& figure, const RunSummary& run, const Abscissa& x, const PointNumber& y,
               const std::string& suffix = "", const char* style = "solid") {
  const Numbers at = x.of(run), values = numbers_of(run, y);
  Series series{run.name + suffix, run.name};
  series.style = style;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] && values[i]) series.point(*at[i], *values[i]);
  }
  if (series.x.empty()) return;
  if (run.outcome == "diverged") series.point(at.back() ? Json(*at.back()) : series.x.back(), std::nan(""));
  figure.series.push_back(std::move(series));
}

/// Adds a figure with a curve for each run that has one, unless none has.
void add_curves(std::vector<Figure>& figures, Figure figure, const std::vector<RunSummary>& runs, const Abscissa& x,
                const PointNumber& y) {
  figure.kind = "line";
  figure.x = {x.label};
  for (const RunSummary& run : runs) add_curve(figure, run, x, y);
  if (!figure.series.empty()) figures.push_back(std::move(figure));
}

/// Training and validation loss: in one figure for few runs, otherwise in two.
void add_losses(std::vector<Figure>& figures, const std::vector<RunSummary>& runs, const Abscissa& x) {
  const PointNumber training = [](const TrainPoint& point) { return finite(point.nll); };
  const PointNumber validation = metric_of("valid_nll");
  const auto figure = [&](const std::string& id, const std::string& what, const char* caption) {
    return Figure{id + "_" + x.id, what + " by " + x.id, caption, "line", {x.label}, {"nats per token"}};
  };
  if (runs.size() > kMostTogether) {
    add_curves(figures, figure("validation", "Validation loss", ""), runs, x, validation);
    add_curves(figures, figure("training", "Training loss", "Mean since the last point."), runs, x, training);
    return;
  }
  Figure both = figure("loss", "Loss", "Of training, the mean since the last point; dashed: on the validation split.");
  for (const RunSummary& run : runs) {
    add_curve(both, run, x, training, ", training");
    add_curve(both, run, x, validation, ", validation", "dashed");
  }
  if (!both.series.empty()) figures.push_back(std::move(both));
}

using Path = std::vector<std::string>;  // of a number in what the watches measured: {"updates", "total"}

std::string title_of(const Path& path) {
  std::string title = join(path);
  std::replace(title.begin(), title.end(), '_', ' ');
  if (!title.empty()) title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  return title;
}

bool is_by_layer(const Json& values) {
  return std::any_of(values.items().begin(), values.items().end(), [](const auto& entry) {
    return entry.value().is_number() && (LayerId::parse(entry.key()) || LayerId::of_parameter(entry.key()));
  });
}

/// The figures of what the watches measured: all numbers except "seconds". An object with one number per layer is one
/// figure: of a single run with a curve for each layer, of several runs with the largest number of each.
class WatchedFigures {
 public:
  explicit WatchedFigures(size_t runs) : runs_(runs) {}

  void add(const std::string& run, int64_t step, const Json& values, const Path& path = {}) {
    for (const auto& [key, value] : values.items()) {
      Path inner = path;
      inner.push_back(key);
      if (value.is_number() && key != "seconds") {
        curve(single_, inner, run, "").point(step, value.get<double>());
      } else if (value.is_object() && is_by_layer(value)) {
        add_layers(run, step, value, inner);
      } else if (value.is_object()) {
        add(run, step, value, inner);
      }
    }
  }

  void move_to(std::vector<Figure>& figures) {
    for (auto* all : {&single_, &by_layer_}) {
      for (auto& [path, figure] : *all) figures.push_back(std::move(figure));
    }
  }

 private:
  using Figures = std::map<Path, Figure>;

  static Series& curve(Figures& figures, const Path& path, const std::string& name, const char* caption) {
    const auto [entry, is_new] = figures.try_emplace(path);
    Figure& figure = entry->second;
    if (is_new) {
      figure = {"watch_" + join(path, "_"), title_of(path), caption, "line", {"step"}};
      std::replace(figure.id.begin(), figure.id.end(), '/', '_');
    }
    const auto found = std::find_if(figure.series.begin(), figure.series.end(),
                                    [&](const Series& series) { return series.name == name; });
    return found == figure.series.end() ? figure.add(name, name) : *found;
  }

  void add_layers(const std::string& run, int64_t step, const Json& layers, const Path& path) {
    std::optional<double> largest;
    for (const auto& [layer, value] : layers.items()) {
      if (!value.is_number()) continue;
      const auto number = value.get<double>();
      if (runs_ == 1) curve(by_layer_, path, layer, "By layer.").point(step, number);
      largest = std::max(largest.value_or(number), number);
    }
    if (runs_ > 1 && largest) curve(by_layer_, path, run, "The largest of all layers.").point(step, *largest);
  }

  size_t runs_;
  Figures single_, by_layer_;
};

std::vector<Figure> runs_figures(const std::vector<RunSummary>& runs) {
  std::vector<Figure> figures;
  const std::vector<Abscissa> all = abscissas();
  for (const Abscissa& x : all) add_losses(figures, runs, x);
  const Abscissa& step = all.front();
  for (const std::string& name : task_metrics(runs))
    add_curves(
        figures,
        {"metric_" + name, name == "bleu" ? "BLEU" : title_of({name}), "On the validation split.", "", {}, {name}},
        runs, step, metric_of(name));
  add_curves(figures, {"learning_rate", "Learning rate", "", "", {}, {"learning rate"}}, runs, step,
             [](const TrainPoint& point) { return finite(point.learning_rate); });
  add_curves(
      figures,
      {"gradient_norm", "Gradient norm", "Global norm of single steps, before clipping.", "", {}, {"norm", true}}, runs,
      step, [](const TrainPoint& point) { return point.gradient_norm; });
  add_curves(figures, {"throughput", "Target tokens per second", "Evaluation excluded.", "", {}, {"tokens per second"}},
             runs, step, [](const TrainPoint& point) { return finite(point.tokens_per_second); });
  WatchedFigures watched(runs.size());
  for (const RunSummary& run : runs) {
    for (const WatchRecord& record : run.watched) watched.add(run.name, record.step, to_json(record).at("watch"));
  }
  watched.move_to(figures);
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
    if (run.learning && run.learning->failed() && run.outcome != "diverged")
      sentences.push_back(fmt::format("{} has failed: {}.", run.name, run.learning->text));
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
