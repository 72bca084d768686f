#include "plumb/report/runs_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/text.h"
#include "plumb/report/results.h"
#include "plumb/report/run_groups.h"
#include "plumb/report/runs_figures.h"
#include "plumb/report/seed_table.h"

namespace plumb {
namespace {

/// The settings that all runs share, by section.
std::vector<SettingGroup> shared_settings(const std::vector<RunSummary>& runs) {
  const auto first = std::find_if(runs.begin(), runs.end(), [](const auto& run) { return !run.settings.empty(); });
  if (first == runs.end()) return {};
  auto shared = first->settings;
  const std::vector<std::string> differing = differing_keys(runs);
  std::erase_if(shared, [&](const auto& setting) { return contains(differing, setting.first); });
  return setting_groups(shared);
}

int64_t diverged_runs(const RunGroup& group) {
  return std::count_if(group.runs.begin(), group.runs.end(), [](const auto& run) { return run.outcome == "diverged"; });
}

bool is_training(const RunSummary& run) { return run.outcome == "running"; }

/// The runs that have ended, by group; all of them if none has.
std::vector<RunGroup> ended_groups(const Groups& groups) {
  std::vector<RunGroup> all, ended;
  for (const RunGroup* group : groups) {
    all.push_back(*group);
    RunGroup kept = *group;
    std::erase_if(kept.runs, is_training);
    if (!kept.runs.empty()) ended.push_back(std::move(kept));
  }
  return ended.empty() ? all : ended;
}

/// "Best validation loss, of learning_rate 0.001: 2.3456 nats per token (perplexity 10.4) at step 900."; of runs over
/// seeds, by the mean. Groups in which no run diverged come first; runs that are still being trained do not count
/// unless all are. Empty if nothing was validated.
std::string best_of(const std::string& task, const Groups& groups, const std::string& of) {
  const RunGroup* best = nullptr;
  Interval least;
  const std::vector<RunGroup> ended = ended_groups(groups);
  for (const RunGroup& group : ended) {
    const Interval found = over_runs(group.runs, "loss");
    const auto rank = [](const RunGroup& each, const Interval& loss) {
      return std::pair(diverged_runs(each) > 0, loss.mean);
    };
    if (found.count > 0 && (best == nullptr || rank(group, found) < rank(*best, least))) best = &group, least = found;
  }
  if (best == nullptr) return {};
  std::string with = is_training(best->runs.front()) ? " so far" : "";
  with += (of.empty() ? "" : ", " + of) + (groups.size() > 1 ? ", of " + best->label : "");
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

/// "step 187 of 1,040, training loss 5.06" of a run that is being trained.
std::string progress_of(const RunSummary& run) {
  std::string text = "step " + with_thousands(run.step);
  if (const int64_t planned = std::atoll(run.setting("train.steps").c_str()); planned > run.step)
    text += " of " + with_thousands(planned);
  if (!run.history.empty() && std::isfinite(run.history.back().loss))
    text += fmt::format(", training loss {:.4g}", run.history.back().loss);
  return text;
}

/// "base-2 trains: step 187 of 1,040, training loss 5.06." of the first few.
std::vector<std::string> in_training(const std::vector<RunSummary>& runs) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> sentences;
  for (const RunSummary& run : runs) {
    if (is_training(run) && sentences.size() < kNamed)
      sentences.push_back(fmt::format("{} trains: {}.", run.name, progress_of(run)));
  }
  return sentences;
}

std::vector<std::string> runs_summary(const std::vector<RunSummary>& runs, const std::vector<RunGroup>& groups) {
  std::vector<std::string> sentences;
  std::map<std::string, int> outcomes;
  for (const RunSummary& run : runs) ++outcomes[run.outcome];
  std::vector<std::string> counts;
  for (const auto& [outcome, count] : outcomes) counts.push_back(fmt::format("{} {}", count, outcome));
  if (runs.size() == 1) {
    const RunSummary& run = runs.front();
    const std::string after = run.seconds ? " after " + duration(*run.seconds) : "";
    sentences.push_back(is_training(run)
                            ? fmt::format("The run trains: {}{}.", progress_of(run), after)
                            : fmt::format("The run is {} at step {}{}.", run.outcome, with_thousands(run.step), after));
  } else {
    sentences.push_back(fmt::format("{} runs: {}.", runs.size(), join(counts)));
    for (const std::string& sentence : in_training(runs)) sentences.push_back(sentence);
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
  const std::vector<RunGroup> groups = group_runs(runs);
  return Results{.title = runs.size() == 1 ? runs.front().name : fmt::format("{} training runs", runs.size()),
                 .summary = runs_summary(runs, groups),
                 .settings = shared_settings(runs),
                 .figures = runs_figures(groups),
                 .tables = {runs_table(runs, run_columns(runs))},
                 .subject = "training runs"}
      .to_json();
}

}  // namespace plumb
