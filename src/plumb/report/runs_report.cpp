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
#include <optional>
#include <set>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/nn/layer_id.h"
#include "plumb/report/run_groups.h"
#include "plumb/report/seed_table.h"

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
constexpr size_t kMostKinds = 8;     // the most colors of a figure over a hyperparameter
constexpr const char* kOverRuns =
    "A curve over several runs that differ in nothing but their seed is their mean; its band reaches from the smallest "
    "to the largest.";

using PointNumber = std::function<std::optional<double>(const TrainPoint&)>;

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

PointNumber metric_of(const std::string& name) {
  return [name](const TrainPoint& point) { return point.metrics.get(name); };
}

/// A number of a run at a step, or of several runs: their mean.
struct Reading {
  int64_t step = 0;
  double value = 0;
  std::optional<double> low{}, high{}, epochs{}, tokens{}, seconds{};
};
using Readings = std::vector<Reading>;  // by step

/// The readings of runs that differ only in their seed as one: means, with the smallest and the largest as their band,
/// at the steps that have a reading of every run that has come as far. They end with the first run that diverged.
Readings merge_runs(const std::vector<RunSummary>& runs, const std::vector<Readings>& of_runs) {
  if (runs.size() == 1) return of_runs.front();
  int64_t end = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].outcome == "diverged" && !of_runs[i].empty()) end = std::min(end, of_runs[i].back().step);
  }
  std::map<int64_t, Readings> by_step;
  for (const Readings& readings : of_runs) {
    for (const Reading& reading : readings) by_step[reading.step].push_back(reading);
  }
  Readings merged;
  for (const auto& [step, readings] : by_step) {
    const auto as_far = std::count_if(of_runs.begin(), of_runs.end(), [at = step](const Readings& one) {
      return !one.empty() && one.back().step >= at;
    });
    if (step > end || static_cast<size_t>(as_far) != readings.size()) continue;
    const auto mean = [&](const auto& number) -> std::optional<double> {
      double sum = 0;
      for (const Reading& reading : readings) sum += number(reading).value_or(std::nan(""));
      return finite(sum / static_cast<double>(readings.size()));
    };
    const auto [least, most] = std::minmax_element(readings.begin(), readings.end(),
                                                   [](const auto& a, const auto& b) { return a.value < b.value; });
    merged.push_back({step, mean([](const Reading& each) { return std::optional(each.value); }).value_or(std::nan("")),
                      least->value, most->value, mean([](const Reading& each) { return each.epochs; }),
                      mean([](const Reading& each) { return each.tokens; }),
                      mean([](const Reading& each) { return each.seconds; })});
  }
  return merged;
}

/// A unit in which the training times of these runs are short numbers.
std::pair<double, std::string> unit_of_time(const std::vector<RunGroup>& groups) {
  double longest = 0;
  for (const RunGroup& group : groups) {
    for (const RunSummary& run : group.runs) {
      for (const std::optional<double>& time : training_seconds(run.history))
        longest = std::max(longest, time.value_or(0));
    }
  }
  if (longest < 180) return {1, "seconds"};
  return longest < 3 * 3600.0 ? std::pair{60.0, "minutes"} : std::pair{3600.0, "hours"};
}

/// Figures with a curve for each group of runs.
class GroupFigures {
 public:
  explicit GroupFigures(const std::vector<RunGroup>& groups) : unit_(unit_of_time(groups)) {}

  /// A curve over the points that have this number, if there are any; `metric`: whose interval is its band. A diverged
  /// run's curve ends in a gap, which the page marks.
  void add(Figure& figure, const RunGroup& group, const std::string& name, const PointNumber& number,
           const std::string& metric = "", const char* style = "solid") const {
    std::vector<Readings> of_runs;
    for (const RunSummary& run : group.runs) {
      const std::vector<std::optional<double>> seconds = training_seconds(run.history);
      Readings& readings = of_runs.emplace_back();
      for (size_t i = 0; i < run.history.size(); ++i) {
        const TrainPoint& point = run.history[i];
        if (const std::optional<double> value = number(point))
          readings.push_back({point.step, *value, point.metrics.get(metric + "_low"),
                              point.metrics.get(metric + "_high"), point.epochs, static_cast<double>(point.tokens),
                              seconds[i]});
      }
    }
    add(figure, group, merge_runs(group.runs, of_runs), name, style);
  }

  void add(Figure& figure, const RunGroup& group, const Readings& readings, const std::string& name,
           const char* style = "solid") const {
    if (readings.empty()) return;
    const bool banded = std::any_of(readings.begin(), readings.end(), [](const Reading& each) { return each.low; });
    Series& series = figure.add(name, group.full_label, style);
    Json epochs = Json::array(), tokens = Json::array(), times = Json::array();
    const auto put = [&](const Reading& at, double value, double low, double high) {
      banded ? series.point(at.step, value, low, high) : series.point(at.step, value);
      epochs.push_back(finite_or_null(at.epochs.value_or(std::nan(""))));
      tokens.push_back(finite_or_null(at.tokens.value_or(std::nan(""))));
      times.push_back(finite_or_null(at.seconds.value_or(std::nan("")) / unit_.first));
    };
    const double gap = std::nan("");
    for (const Reading& each : readings) put(each, each.value, each.low.value_or(gap), each.high.value_or(gap));
    if (std::any_of(group.runs.begin(), group.runs.end(), [](const auto& run) { return run.outcome == "diverged"; })) {
      const RunSummary& run = group.runs.front();
      Reading end = readings.back();
      if (group.runs.size() == 1 && !run.history.empty())
        end = {run.history.back().step,
               0,
               {},
               {},
               run.history.back().epochs,
               static_cast<double>(run.history.back().tokens),
               training_seconds(run.history).back()};
      put(end, gap, gap, gap);
    }
    series.other_x = {std::move(epochs), std::move(tokens), std::move(times)};
  }

  /// Adds the figure unless it has no curve, with its axes: those that no curve has numbers for are left out.
  void take(Figure figure) {
    if (figure.series.empty()) return;
    figure.kind = "line";
    figure.x = {"step"};
    const std::vector<Axis> axes = {
        {"epochs"}, {"target tokens"}, {unit_.second + " of training, evaluation excluded"}};
    std::vector<size_t> kept;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto known = [i](const Series& series) {
        return std::any_of(series.other_x[i].begin(), series.other_x[i].end(),
                           [](const Json& at) { return !at.is_null(); });
      };
      if (std::all_of(figure.series.begin(), figure.series.end(), known)) kept.push_back(i);
    }
    for (const size_t i : kept) figure.other_x.push_back(axes[i]);
    for (Series& series : figure.series) {
      std::vector<Json> some;
      for (const size_t i : kept) some.push_back(std::move(series.other_x[i]));
      series.other_x = std::move(some);
    }
    figures.push_back(std::move(figure));
  }

  std::vector<Figure> figures;

 private:
  std::pair<double, std::string> unit_;
};

using Groups = std::vector<const RunGroup*>;

/// The tasks of these groups with their groups, in order.
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
    curves(figure("training", "Training loss", "Mean since the last point." + caption), unit_of_loss(task), training);
  } else {
    Figure both = figure("loss", "Loss",
                         "Of training, the mean since the last point; dashed: on the validation split." + caption);
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
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  for (const std::string& name : names) {
    if (name.size() > 4 && (name.ends_with("_low") ? has(name.substr(0, name.size() - 4))
                                                   : name.ends_with("_high") && has(name.substr(0, name.size() - 5))))
      continue;  // drawn as a band
    const bool interval = has(name + "_low") && has(name + "_high");
    const std::string title = name == "bleu" ? "BLEU" : name == "mcc" ? "MCC" : title_of({name});
    curves(figure("metric_" + name, title,
                  std::string("On the validation split.") +
                      (interval ? " The band of a single run is its 95% interval." : "") + caption),
           name, metric_of(name), name);
  }
}

/// Adds a figure of the best validation loss over each numeric setting that differs, a point for each run; the color
/// tells the other settings.
void add_hyperparameters(std::vector<Figure>& figures, const std::string& task, const Groups& groups,
                         const std::string& of) {
  std::map<std::string, std::set<double>> values;
  for (const RunGroup* group : groups) {
    for (const auto& [name, value] : group->all_settings) {
      if (value.is_number()) values[name].insert(value.get<double>());
    }
  }
  for (const auto& [name, different] : values) {
    if (different.size() < 2) continue;
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
      const auto at = std::find_if(group->all_settings.begin(), group->all_settings.end(),
                                   [&, &name = name](const auto& setting) { return setting.first == name; });
      if (at == group->all_settings.end() || !at->second.is_number()) continue;
      std::string kind = kinds.size() > kMostKinds ? "" : group->settings_text(name);
      if (kind.empty()) kind = "runs";
      for (const RunSummary& run : group->runs) {
        if (run.outcome == "diverged") {
          ++diverged;
        } else if (run.best_valid_nll) {
          if (!series.contains(kind)) series[kind] = &figure.add(kind, kind, "points");
          series[kind]->point(at->second, *run.best_valid_nll);
          drawn.insert(at->second.get<double>());
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
  using Curves = std::map<const RunGroup*, std::map<std::string, std::vector<Readings>>>;  // by group and name
  using Figures = std::map<Path, Curves>;

  static void put(Figures& figures, const Path& path, const Place& at, const std::string& name,
                  const Reading& reading) {
    std::vector<Readings>& of_runs = figures[path][&at.group][name];
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
        Reading reading{at.step, value.get<double>()};
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
  curves({"throughput", "Target tokens per second", "Evaluation excluded.", "", {}, {"tokens per second"}},
         [](const TrainPoint& point) { return finite(point.tokens_per_second); });
  WatchedFigures(groups).move_to(to);
  return std::move(to.figures);
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

int64_t diverged_runs(const RunGroup& group) {
  return std::count_if(group.runs.begin(), group.runs.end(), [](const auto& run) { return run.outcome == "diverged"; });
}

/// "Best validation loss, of learning_rate 0.001: 2.3456 nats per token (perplexity 10.4) at step 900."; of runs over
/// seeds, by the mean. Groups in which no run diverged come first. Empty if nothing was validated.
std::string best_of(const std::string& task, const Groups& groups, const std::string& of) {
  const RunGroup* best = nullptr;
  Interval least;
  for (const RunGroup* group : groups) {
    const Interval found = over_runs(group->runs, "loss");
    const auto rank = [](const RunGroup& each, const Interval& loss) {
      return std::pair(diverged_runs(each) > 0, loss.mean);
    };
    if (found.count > 0 && (best == nullptr || rank(*group, found) < rank(*best, least))) best = group, least = found;
  }
  if (best == nullptr) return {};
  std::string with = (of.empty() ? "" : ", " + of) + (groups.size() > 1 ? ", of " + best->label : "");
  if (const int64_t diverged = diverged_runs(*best); diverged > 0)
    with += fmt::format(", {} of {} diverged", diverged, best->runs.size());
  const std::string perplexity =
      task == "classification" ? "" : fmt::format(" (perplexity {:.4g})", std::exp(least.mean));
  if (least.count > 1)
    return fmt::format("Best validation loss{}: {} {} (mean and 95% interval of {} runs).", with,
                       with_interval(least, 4), unit_of_loss(task), least.count);
  const auto run =
      std::find_if(best->runs.begin(), best->runs.end(), [](const auto& one) { return one.best_valid_nll; });
  return fmt::format("Best validation loss{}: {:.4f} {}{} at step {}.", with, least.mean, unit_of_loss(task),
                     perplexity, with_thousands(run->best_step));
}

/// What is wrong with the runs, once for all of which it is true.
std::vector<std::string> notices(const std::vector<RunSummary>& runs) {
  struct Notice {
    bool failed;
    std::string text;
    std::vector<std::string> names;
  };
  std::vector<Notice> all;
  const auto add = [&](bool failed, const std::string& text, const std::string& name) {
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Notice& each) { return each.failed == failed && each.text == text; });
    if (found == all.end()) found = all.insert(found, {failed, text, {}});
    found->names.push_back(name);
  };
  for (const RunSummary& run : runs) {
    if (run.learning && run.learning->failed() && run.outcome != "diverged") add(true, run.learning->text, run.name);
    std::string trouble = run.trouble;
    if (!run.directory.empty()) replace_all(trouble, (run.directory / "").string(), "");
    if (!trouble.empty()) add(false, trouble, run.name);
  }
  std::vector<std::string> sentences;
  for (Notice& notice : all) {
    constexpr size_t kNamed = 3;
    const size_t count = notice.names.size();
    notice.names.resize(std::min(count, kNamed));
    const std::string more = count > kNamed ? fmt::format(" and {} more", count - kNamed) : "";
    const std::string who =
        count == 1 ? notice.names.front() : fmt::format("{} runs ({}{})", count, join(notice.names), more);
    sentences.push_back(fmt::format("{}{}: {}.", who,
                                    !notice.failed ? ""
                                    : count == 1   ? " has failed"
                                                   : " have failed",
                                    notice.text));
  }
  return sentences;
}

Json runs_summary(const std::vector<RunSummary>& runs, const std::vector<RunGroup>& groups) {
  Json sentences = Json::array();
  std::map<std::string, int> outcomes;
  for (const RunSummary& run : runs) ++outcomes[run.outcome];
  std::vector<std::string> counts;
  for (const auto& [outcome, count] : outcomes) counts.push_back(fmt::format("{} {}", count, outcome));
  if (runs.size() == 1) {
    const RunSummary& run = runs.front();
    sentences.push_back(fmt::format("The run is {} at step {}{}.", run.outcome, with_thousands(run.step),
                                    run.seconds ? " after " + duration(*run.seconds) : ""));
  } else {
    sentences.push_back(fmt::format("{} runs: {}.", runs.size(), join(counts)));
  }
  const auto tasks = by_task(groups);
  for (const auto& [task, members] : tasks) {
    const std::string sentence = best_of(task, members, tasks.size() == 1 ? "" : task);
    if (!sentence.empty()) sentences.push_back(sentence);
  }
  for (const std::string& notice : notices(runs)) sentences.push_back(notice);
  return sentences;
}

}  // namespace

Table runs_table(const std::vector<RunSummary>& runs, const std::vector<RunColumn>& columns) {
  Table table{"runs", "Runs",
              "First the settings in which the runs differ. Losses are in nats, the time is in seconds; the "
              "step is the last that is recorded."};
  for (const RunColumn& column : columns) table.columns.push_back(column.is_time ? "seconds" : column.name);
  for (const RunSummary& run : runs) {
    Json row = Json::array();
    for (const RunColumn& column : columns) row.push_back(column.value(run));
    table.rows.push_back(row);
  }
  return table;
}

Json runs_report(const std::vector<RunSummary>& runs) {
  Json report = make_document("study", 1);
  report["title"] = runs.size() == 1 ? runs.front().name : fmt::format("{} training runs", runs.size());
  report["subject"] = "training runs";
  report["created"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report["plumb_version"] = PLUMB_VERSION;
  const std::vector<RunGroup> groups = group_runs(runs);
  report["summary"] = runs_summary(runs, groups);
  report["settings"] = shared_settings(runs);
  report["figures"] = Json::array();
  for (const Figure& figure : runs_figures(groups)) report["figures"].push_back(figure.to_json());
  report["tables"] = Json::array({runs_table(runs, run_columns(runs)).to_json()});
  return report;
}

}  // namespace plumb
