#include "plumb/check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plumb/report/html.h"
#include "plumb/report/report_parts.h"

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
  figure.caption = "The last loss of each trial. Dashed: the largest stable rate, with its 80% interval.";
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
      const double loss = trial->losses.back();
      series.point(trial->learning_rate, loss);
      lowest = std::min(lowest, loss);
      highest = std::max(highest, loss);
    }
  }
  if (result.largest_stable_rate) {
    for (const double rate :
         {result.largest_stable_rate->low, result.largest_stable_rate->estimate, result.largest_stable_rate->high}) {
      Series& line = figure.add(fmt::format("{:.2g}", rate), "largest stable rate", "dashed");
      for (const double loss : {lowest, highest}) line.point(rate, loss);
    }
  }
  return figure;
}

Table findings_table(const CheckResult& result) {
  Table table{.id = "reasons", .title = "What was measured before training"};
  table.columns = {"raised", "alarm", "place", "value", "threshold", "finding", "advice"};
  for (const Finding& finding : result.findings) {
    table.row(std::string(finding.raised ? "yes" : ""), finding.alarm, finding.where, finding.value, finding.threshold,
              finding.text, finding.raised ? finding.advice : std::string());
  }
  return table;
}

Table trials_table(const CheckResult& result) {
  Table table{.id = "trials", .title = "Trials"};
  table.columns = {"learning rate", "warm-up", "seed", "outcome", "gradients", "seconds", "why"};
  for (const Trial& trial : result.trials) {
    table.row(trial.learning_rate, trial.warm_up, trial.seed, to_string(trial.outcome), trial.steps_taken,
              trial.seconds, trial.because);
  }
  return table;
}

}  // namespace

Json check_report(const CheckResult& result, const std::string& about) {
  Json document = begin_results("Will it train?", about);
  document["summary"].push_back(result.answer);
  if (result.recommended) {
    document["summary"].push_back("Recommended: " + to_string(*result.recommended) + ".");
  }
  for (const Figure& figure : {losses_by_rate(result), losses_by_step(result)})
    document["figures"].push_back(figure.to_json());
  for (const Table& table : {findings_table(result), trials_table(result)})
    document["tables"].push_back(table.to_json());
  return document;
}

}  // namespace plumb::check
