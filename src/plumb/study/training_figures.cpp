// The figures and tables of [training].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/contains.h"
#include "plumb/report/runs_figures.h"
#include "plumb/study/training_arms.h"

namespace plumb {
namespace {

/// "WHAT, 6+6 layers, adam", with losses on the y-axis; without what differs among the arms that are drawn.
Figure loss_figure(const char* id, const char* what, const StudyContext& context, const ArmId& shown,
                   const std::string& caption) {
  std::string title = what;
  if (!shown.own_depth) title += ", " + layers_in_words(model_for(context, shown.study_arm, shown.layers));
  if (!shown.own_optimizer) title += ", " + shown.optimizer.name();
  return {figure_name(id, shown),
          title,
          caption + " Solid: with warm-up, dashed: without.",
          "line",
          {"step"},
          {"validation loss (nats per token)", true}};
}

const char* style_of(const Arm& arm) { return arm.id.warms_up() ? "solid" : "dashed"; }

/// NaN if there are fewer than two rates at which all arms that it is compared with were trained.
double sensitivity_of(const Arm& arm, const std::vector<double>& rates) {
  return rates.size() < 2 ? std::nan("") : arm.sweep.among(rates).sensitivity(**arm.initial).mean;
}

}  // namespace

Figure sweep_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown) {
  Figure figure = loss_figure("sweep", "Final validation loss by learning rate", context, shown,
                              "Lines: means of the runs that finished; points: single runs, at the top edge those that "
                              "diverged. Hollow: the best rate is the smallest or largest that was tried, so a better "
                              "one may lie beyond.");
  figure.x = {"learning rate", true};
  figure.y.log = false;
  double highest = 0;
  for (const Arm& arm : arms) {
    for (const Sweep::Point& point : arm.sweep.points) {
      for (const double loss : point.losses) highest = std::isfinite(loss) ? std::max(highest, loss) : highest;
    }
  }
  for (const Arm& arm : arms) {
    if (!same_figure(arm.id, shown)) continue;
    Series& means = figure.add(arm.id.name(), arm.id.study_arm, style_of(arm));
    means.hollow.emplace();
    Series runs{arm.id.name() + ", runs", arm.id.study_arm};
    runs.style = "points";
    runs.companion = true;
    for (const Sweep::Point& point : arm.sweep.points) {
      if (!arm.sweep.open_end().empty() && &point == &arm.sweep.best()) means.hollow->push_back(means.x.size());
      means.point(point.learning_rate, judge(point.losses, {}).effect.mean);
      for (const double loss : point.losses) {
        // With one seed, a finished run is the mean itself.
        if (point.losses.size() > 1 || !std::isfinite(loss))
          runs.point(point.learning_rate, std::isfinite(loss) ? loss : 1.05 * highest);
      }
    }
    if (!runs.x.empty()) figure.series.push_back(runs);
  }
  return figure;
}

Figure curves_figure(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown) {
  Figure figure = loss_figure("loss", "Validation loss during training", context, shown,
                              "Each arm at its best learning rate, first seed; a cross marks a run that diverged.");
  for (const Arm& arm : arms) {
    if (!same_figure(arm.id, shown)) continue;
    figure.series.push_back(arm.best().front()->validation_curve(
        fmt::format("{}, lr {:g}", arm.id.name(), arm.sweep.best().learning_rate), arm.id.study_arm));
    figure.series.back().style = style_of(arm);
  }
  return figure;
}

std::vector<Figure> watch_figures(const StudyContext& context, const std::vector<Arm>& arms, const ArmId& shown) {
  std::vector<RunGroup> groups;
  std::map<std::string, const Arm*> by_name;
  for (const Arm& arm : arms) {
    if (!same_figure(arm.id, shown)) continue;
    RunGroup& group = groups.emplace_back();
    group.full_label = arm.id.name();
    by_name[group.full_label] = &arm;
    for (const Planned<TrainedRun>& run : arm.best()) {
      RunSummary& summary = group.runs.emplace_back();
      summary.outcome = to_string(run->result.outcome);
      summary.history = run->result.history;
      summary.watched = run->result.watched;
    }
  }
  std::vector<Figure> figures = watched_figures(groups);
  for (Figure& figure : figures) {
    figure.id = figure_name(figure.id.c_str(), shown);
    if (!shown.own_depth) figure.title += ", " + layers_in_words(model_for(context, shown.study_arm, shown.layers));
    figure.caption += std::string(figure.caption.empty() ? "" : " ") +
                      "Each arm at its best learning rate: the mean of its seeds, with a band from the smallest to the "
                      "largest. Dashed: without warm-up.";
    for (Series& series : figure.series) {
      const auto arm = by_name.find(series.name);
      if (arm == by_name.end()) continue;  // a layer of the only arm
      series.group = arm->second->id.study_arm;
      series.style = style_of(*arm->second);
    }
  }
  return figures;
}

Table runs_table(const std::vector<Arm>& arms) {
  Table table{"runs",
              "Training runs",
              "Loss and perplexity on the validation split at the end.",
              {"arm", "layers", "optimizer", "warm-up", "learning rate", "seed", "outcome", "steps", "validation loss",
               "perplexity", "seconds"}};
  for (const Arm& arm : arms) {
    for (const auto& at_rate : arm.runs) {
      for (const Planned<TrainedRun>& run : at_rate) {
        table.row(arm.id.study_arm, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up),
                  run->config.train.learning_rate, run->config.train.seed, to_string(run->result.outcome),
                  run->result.steps, run->loss(), std::exp(run->loss()), run->result.seconds);
      }
    }
  }
  return table;
}

std::vector<double> common_rates(const std::vector<ArmId>& arms, const ArmId& id) {
  std::vector<double> rates = id.optimizer.learning_rates;
  for (const ArmId& other : arms) {
    if (!same_figure(id, other)) continue;
    const std::vector<double>& theirs = other.optimizer.learning_rates;
    std::erase_if(rates, [&](double rate) { return !contains(theirs, rate); });
  }
  return rates;
}

Table sweeps_table(const std::vector<Arm>& arms) {
  Table table{
      "sweeps",
      "Best learning rates",
      fmt::format("The mean loss over the seeds, with its 95% interval. Failed: diverged or ended no lower than "
                  "{:.2f}, the least loss of a model that ignores its input, with which the run then counts. "
                  "Sensitivity (Wortsman et al. 2023): how much larger the loss is on average over the rates than at "
                  "the best one, where no loss counts for more than that before training; over the rates of all arms "
                  "in the same figure.",
                  arms.front().sweep.failed_at),
      {"arm", "layers", "optimizer", "warm-up", "best learning rate", "loss", "low", "high", "diverged", "failed",
       "sensitivity", "note"}};
  std::vector<ArmId> ids;
  for (const Arm& arm : arms) ids.push_back(arm.id);
  for (const Arm& arm : arms) {
    const Sweep::Point& best = arm.sweep.best();
    std::vector<double> all;
    for (const Sweep::Point& point : arm.sweep.points) all.insert(all.end(), point.losses.begin(), point.losses.end());
    const auto from = [&](double limit) {
      const auto runs = std::count_if(all.begin(), all.end(), [limit](double loss) { return loss >= limit; });
      return fmt::format("{} of {}", runs, all.size());
    };
    table.row(arm.id.study_arm, arm.id.layers, arm.id.optimizer.name(), as_cell(arm.id.warm_up), best.learning_rate,
              judge(arm.sweep.counted(best.losses), {}).effect, from(kNoLimit), from(arm.sweep.failed_at),
              sensitivity_of(arm, common_rates(ids, arm.id)), arm.sweep.open_end());
  }
  return table;
}

}  // namespace plumb
