#include "plumb/check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/check/words.h"
#include "plumb/report/results.h"

namespace plumb::check {
namespace {

std::string label_of(const Trial& trial) {
  return fmt::format("{:.2g}{}", trial.learning_rate,
                     trial.warm_up > 0 ? fmt::format(", warm-up {}", trial.warm_up) : "");
}

Figure losses_by_step(const CheckResult& result) {
  Figure figure;
  figure.id = "losses";
  figure.title = "Losses of the trials";
  figure.caption =
      "The loss of a fixed set of training examples, by learning rate. Dashed: a model that knows only how frequent "
      "each label is.";
  figure.kind = "line";
  figure.x.label = "step";
  figure.y.label = "negative log-likelihood per label, nats";
  int64_t longest = 1;
  for (const Trial& trial : result.trials) {
    Series& series = figure.add(label_of(trial), fmt::format("{:.2g}", trial.learning_rate));
    for (size_t i = 0; i < trial.losses.size(); ++i) series.point(static_cast<double>(trial.steps[i]), trial.losses[i]);
    if (!trial.steps.empty()) longest = std::max(longest, trial.steps.back());
  }
  Series& frequencies = figure.add("frequencies of the labels", "frequencies", "dashed");
  for (const int64_t step : {int64_t{0}, longest}) frequencies.point(static_cast<double>(step), result.frequencies);
  return figure;
}

Figure losses_by_rate(const CheckResult& result) {
  Figure figure;
  figure.id = "rates";
  figure.title = "Loss against learning rate";
  // Trials that diverged have ended before.
  size_t at = std::numeric_limits<size_t>::max();
  for (const Trial& trial : result.trials) {
    if (!trial.losses.empty() && std::isfinite(trial.losses.back())) at = std::min(at, trial.losses.size() - 1);
  }
  figure.caption =
      "The loss of each trial at the last step that all have measured. Dashed: the configured and the recommended "
      "rate, and the largest stable one with its 80% interval.";
  figure.kind = "scatter";
  figure.x.label = "learning rate";
  figure.x.log = true;
  figure.y.label = "negative log-likelihood per label, nats";
  std::map<std::string, std::vector<const Trial*>> by_outcome;
  for (const Trial& trial : result.trials)
    by_outcome[to_string(trial.outcome) + (trial.warm_up > 0 ? ", with warm-up" : "")].push_back(&trial);
  double lowest = result.frequencies, highest = result.frequencies;
  for (const auto& [outcome, trials] : by_outcome) {
    Series& series = figure.add(outcome, outcome, "points");
    for (const Trial* trial : trials) {
      if (trial->losses.empty()) continue;
      const double loss = trial->losses[std::min(at, trial->losses.size() - 1)];
      series.point(trial->learning_rate, loss);
      lowest = std::min(lowest, loss);
      highest = std::max(highest, loss);
    }
  }
  const auto mark = [&](const std::string& name, const std::string& group, double rate) {
    Series& line = figure.add(fmt::format("{}, {:.2g}", name, rate), group, "dashed");
    for (const double loss : {lowest, highest}) line.point(rate, loss);
  };
  if (result.planned_rate > 0) mark("configured", "configured", result.planned_rate);
  if (result.recommended && result.configured_rate > 0 && !recommends_as_configured(result))
    mark(result.recommended->tried ? "recommended" : "estimate to try", "recommended",
         result.recommended->learning_rate * result.planned_rate / result.configured_rate);
  if (const auto& stable = result.largest_stable_rate) {
    mark("80% interval from", "largest stable rate", stable->low);
    mark("largest stable rate", "largest stable rate", stable->estimate);
    mark("80% interval to", "largest stable rate", stable->high);
  }
  return figure;
}

/// Those that were raised.
Table alarms_table(const CheckResult& result) {
  Table table{.id = "reasons", .title = "Alarms before training"};
  table.columns = {"place", "finding", "advice", "alarm", "value", "threshold"};
  for (const Finding& finding : result.findings) {
    if (finding.raised)
      table.row(finding.where, finding.text, finding.advice, finding.alarm, finding.value, finding.threshold);
  }
  return table;
}

Table trials_table(const CheckResult& result) {
  Table table{.id = "trials", .title = "Trials"};
  table.columns = {"learning rate", "warm-up", "seed", "outcome", "gradients", "seconds", "why", "change"};
  const auto add = [&](const Trial& trial, const std::string& change) {
    table.row(trial.learning_rate, trial.warm_up, trial.seed, to_string(trial.outcome), trial.steps_taken,
              trial.seconds, trial.because, change);
  };
  for (const Trial& trial : result.trials) add(trial, "");
  for (const Change& change : result.changes) add(change.trial, change.setting);
  return table;
}

}  // namespace

Json check_report(const CheckResult& result, const std::string& about) {
  Results results{.title = "Will it train?",
                  .subtitle = about,
                  .summary = {as_sentence(result.checked), as_sentence(result.answer)},
                  .figures = {losses_by_rate(result), losses_by_step(result)},
                  .tables = {alarms_table(result), trials_table(result)},
                  .subject = "check"};
  for (const Line& line : lines_of(result)) results.summary.push_back(as_sentence(line.name + ": " + line.text));
  const bool tried =
      std::any_of(result.trials.begin(), result.trials.end(), [](const Trial& trial) { return !trial.losses.empty(); });
  if (!tried) results.figures.clear();
  std::erase_if(results.tables, [](const Table& table) { return table.rows.empty(); });
  return results.to_json();
}

}  // namespace plumb::check
