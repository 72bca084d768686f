#include "plumb/report/runs_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"
#include "plumb/nn/layer_id.h"
#include "plumb/report/group_curves.h"

namespace plumb {
namespace {

using Path = std::vector<std::string>;  // of a number in what the watches measured: {"updates", "total"}

std::string title_of(const Path& path) {
  std::string title = join(path);
  std::replace(title.begin(), title.end(), '_', ' ');
  if (!title.empty()) title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  return title;
}

constexpr size_t kMostTogether = 3;  // the most groups whose training and validation losses share a figure
constexpr size_t kMostOver = 3;      // the most that each have a figure, whether or not others differ with them
constexpr size_t kMostKinds = 8;     // the most colors of a figure over a hyperparameter
constexpr const char* kOverRuns =
    "A curve over several runs that differ in nothing but their seed is their mean; its band reaches from the smallest "
    "to the largest.";

PointNumber metric_of(const std::string& name) {
  return [name](const TrainPoint& point) { return point.metrics.get(name); };
}

/// Adds figures of one task, whose losses and metrics are comparable: training and validation loss, in one figure for
/// few groups, otherwise in two; and the task's metrics. `of`: what its figures are called where there are other tasks.
void add_task(GroupFigures& to, const std::string& task, const Groups& groups, const std::string& of) {
  const PointNumber training = [](const TrainPoint& point) { return finite(point.nll); };
  const PointNumber validation = metric_of("valid_nll");
  const auto figure = [&](const std::string& id, const std::string& what, const std::string& caption) {
    return Figure{id + (of.empty() ? "" : "_" + of), what + (of.empty() ? "" : ", " + of), caption, "line", {}, {}};
  };
  const bool several =
      std::any_of(groups.begin(), groups.end(), [](const auto* group) { return group->runs.size() > 1; });
  const std::string caption = several ? std::string(" ") + kOverRuns : "";
  const auto curves = [&](Figure made, const std::string& y, const PointNumber& number,
                          const std::string& metric = "") {
    made.y = {y};
    for (const RunGroup* group : groups) to.add(made, *group, group->label, number, metric);
    to.take(std::move(made));
  };
  if (groups.size() > kMostTogether) {
    curves(figure("validation", "Validation loss", several ? kOverRuns : ""), unit_of_loss(task), validation);
    curves(figure("training", "Training loss", "Averaged since the previous point." + caption), unit_of_loss(task),
           training);
  } else {
    Figure both = figure("loss", "Loss",
                         "Solid: training loss, averaged since the previous point; dashed: validation loss." + caption);
    both.y = {unit_of_loss(task)};
    for (const RunGroup* group : groups) {
      to.add(both, *group, group->label + ", training", training);
      to.add(both, *group, group->label + ", validation", validation, "", "dashed");
    }
    to.take(std::move(both));
  }
  std::vector<RunSummary> runs;
  for (const RunGroup* group : groups) runs.insert(runs.end(), group->runs.begin(), group->runs.end());
  const std::vector<std::string> names = task_metrics(runs);
  for (const std::string& name : names) {
    if (name.size() > 4 &&
        (name.ends_with("_low") ? contains(names, name.substr(0, name.size() - 4))
                                : name.ends_with("_high") && contains(names, name.substr(0, name.size() - 5))))
      continue;  // drawn as a band
    const bool interval = contains(names, name + "_low") && contains(names, name + "_high");
    const std::string title = name == "bleu" ? "BLEU" : name == "mcc" ? "MCC" : title_of({name});
    curves(figure("metric_" + name, title,
                  std::string("On the validation split.") +
                      (interval ? " The band of a single run is its 95% interval." : "") + caption),
           name, metric_of(name), name);
  }
}

/// Whether two groups differ in this setting alone, so that a figure over it compares like with like.
bool varied_alone(const Groups& groups, const std::string& name) {
  std::map<std::string, std::set<std::string>> values;  // by the other settings
  for (const RunGroup* group : groups) {
    std::string own, others;
    for (const auto& [key, value] : group->all_settings)
      (key == name ? own : others) += key + ' ' + value.dump() + '\n';
    values[others].insert(own);
  }
  return std::any_of(values.begin(), values.end(), [](const auto& each) { return each.second.size() > 1; });
}

/// Adds a figure of the best validation loss over each numeric setting that differs, a point for each run; the color
/// tells the other settings. Where many settings differ, only over those that differ alone somewhere.
void add_hyperparameters(std::vector<Figure>& figures, const std::string& task, const Groups& groups,
                         const std::string& of) {
  std::map<std::string, std::set<double>> values;
  for (const RunGroup* group : groups) {
    for (const auto& [name, value] : group->all_settings) {
      if (value.is_number()) values[name].insert(value.get<double>());
    }
  }
  for (const auto& [name, different] : values) {
    if (different.size() < 2 || (values.size() > kMostOver && !varied_alone(groups, name))) continue;
    const bool log = *different.begin() > 0 && *different.rbegin() >= 4 * *different.begin();
    Figure figure{"best_by_" + name + (of.empty() ? "" : "_" + of),
                  "Best validation loss by " + name + (of.empty() ? "" : ", " + of),
                  "A point for each run.",
                  "scatter",
                  {name, log},
                  {unit_of_loss(task)}};
    std::set<std::string> kinds;
    for (const RunGroup* group : groups) kinds.insert(group->settings_text(name));
    std::map<std::string, Series*> series;
    std::set<double> drawn;
    int diverged = 0;
    for (const RunGroup* group : groups) {
      const Json* at = find_value(group->all_settings, name);
      if (at == nullptr || !at->is_number()) continue;
      std::string kind = kinds.size() > kMostKinds ? "" : group->settings_text(name);
      if (kind.empty()) kind = "runs";
      for (const RunSummary& run : group->runs) {
        if (run.outcome == "diverged") {
          ++diverged;
        } else if (run.best_valid_nll) {
          if (!series.contains(kind)) series[kind] = &figure.add(kind, kind, "points");
          const AxisPlace place = at->is_number_float() ? AxisPlace(at->get<double>()) : at->get<int64_t>();
          series[kind]->point(place, *run.best_valid_nll);
          drawn.insert(at->get<double>());
        }
      }
    }
    if (diverged > 0)
      figure.notes.push_back(fmt::format("Without {} run{} that diverged.", diverged, diverged == 1 ? "" : "s"));
    if (drawn.size() > 1) figures.push_back(std::move(figure));
  }
}

bool is_by_layer(const Json& values) {
  return std::any_of(values.items().begin(), values.items().end(), [](const auto& entry) {
    return entry.value().is_number() && (LayerId::parse(entry.key()) || LayerId::of_parameter(entry.key()));
  });
}

/// The figures of what the watches measured: all numbers except "seconds"; "low" and "high" of a "value" are its band.
/// An object with one number per layer is one figure: of a single group with a curve for each layer, of several with
/// the largest number of each.
class WatchedFigures {
 public:
  explicit WatchedFigures(const std::vector<RunGroup>& groups) : groups_(groups) {
    for (const RunGroup& group : groups) {
      for (size_t run = 0; run < group.runs.size(); ++run) {
        for (const WatchRecord& record : group.runs[run].watched)
          add({group, run, record.step}, to_json(record).at("watch"), {});
      }
    }
  }

  void move_to(GroupFigures& to) {
    for (auto* all : {&single_, &by_layer_}) {
      for (auto& [path, curves] : *all) {
        Figure figure{"watch_" + join(path, "_"), title_of(path),
                      all == &single_        ? ""
                      : groups_.size() == 1U ? "By layer."
                                             : "The largest of all layers.",
                      "line"};
        std::replace(figure.id.begin(), figure.id.end(), '/', '_');
        for (const RunGroup& group : groups_) {
          for (auto& [name, of_runs] : curves[&group]) to.add(figure, group, merge_runs(group.runs, of_runs), name);
        }
        if (all == &by_layer_ && groups_.size() == 1) {
          for (Series& series : figure.series) series.group = series.name;
        }
        to.take(std::move(figure));
      }
    }
  }

 private:
  struct Place {
    const RunGroup& group;
    size_t run = 0;
    int64_t step = 0;
  };
  using Curves = std::map<const RunGroup*, std::map<std::string, std::vector<RunReadings>>>;  // by group and name
  using Figures = std::map<Path, Curves>;

  static void put(Figures& figures, const Path& path, const Place& at, const std::string& name,
                  const RunReading& reading) {
    std::vector<RunReadings>& of_runs = figures[path][&at.group][name];
    of_runs.resize(at.group.runs.size());
    of_runs[at.run].push_back(reading);
  }

  void add(const Place& at, const Json& values, const Path& path) {
    const auto number = [&](const char* key) {
      const auto found = values.find(key);
      return found != values.end() && found->is_number() ? finite(found->get<double>()) : std::nullopt;
    };
    const bool banded = number("value") && number("low") && number("high");
    for (const auto& [key, value] : values.items()) {
      Path inner = path;
      inner.push_back(key);
      if (value.is_number() && key != "seconds") {
        if (banded && (key == "low" || key == "high")) continue;
        RunReading reading{at.step, value.get<double>()};
        if (banded && key == "value") reading.low = number("low"), reading.high = number("high");
        put(single_, inner, at, at.group.full_label, reading);
      } else if (value.is_object() && is_by_layer(value)) {
        add_layers(at, value, inner);
      } else if (value.is_object()) {
        add(at, value, inner);
      }
    }
  }

  void add_layers(const Place& at, const Json& layers, const Path& path) {
    std::optional<double> largest;
    for (const auto& [layer, value] : layers.items()) {
      if (!value.is_number()) continue;
      const auto number = value.get<double>();
      if (groups_.size() == 1) put(by_layer_, path, at, layer, {at.step, number});
      largest = std::max(largest.value_or(number), number);
    }
    if (groups_.size() > 1 && largest) put(by_layer_, path, at, at.group.full_label, {at.step, *largest});
  }

  const std::vector<RunGroup>& groups_;
  Figures single_, by_layer_;
};

}  // namespace

std::vector<std::pair<std::string, Groups>> by_task(const std::vector<RunGroup>& groups) {
  std::vector<std::pair<std::string, Groups>> tasks;
  for (const RunGroup& group : groups) {
    auto found = std::find_if(tasks.begin(), tasks.end(), [&](const auto& task) { return task.first == group.task; });
    if (found == tasks.end()) found = tasks.insert(tasks.end(), {group.task, {}});
    found->second.push_back(&group);
  }
  return tasks;
}

const char* unit_of_loss(const std::string& task) {
  return task == "classification" ? "nats per example" : "nats per token";
}

std::vector<Figure> runs_figures(const std::vector<RunGroup>& groups) {
  GroupFigures to(groups);
  const auto tasks = by_task(groups);
  const auto of = [&](const std::string& task) {
    return tasks.size() == 1 ? "" : task.empty() ? "unknown task" : task;
  };
  for (const auto& [task, members] : tasks) {
    add_task(to, task, members, of(task));
    add_hyperparameters(to.figures, task, members, of(task));
  }
  const auto curves = [&](Figure figure, const PointNumber& number) {
    for (const RunGroup& group : groups) to.add(figure, group, group.full_label, number);
    to.take(std::move(figure));
  };
  curves({"learning_rate", "Learning rate", "", "", {}, {"learning rate"}},
         [](const TrainPoint& point) { return finite(point.learning_rate); });
  curves({"gradient_norm", "Gradient norm", "Global norm of single steps, before clipping.", "", {}, {"norm", true}},
         [](const TrainPoint& point) { return point.gradient_norm; });
  curves({"throughput",
          "Target tokens per second",
          "The time of validation is not counted.",
          "",
          {},
          {"tokens per second"}},
         [](const TrainPoint& point) { return finite(point.tokens_per_second); });
  WatchedFigures(groups).move_to(to);
  return std::move(to.figures);
}

std::vector<Figure> watched_figures(const std::vector<RunGroup>& groups) {
  GroupFigures to(groups);
  WatchedFigures(groups).move_to(to);
  return std::move(to.figures);
}

}  // namespace plumb
