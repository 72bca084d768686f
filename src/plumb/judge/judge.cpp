#include "plumb/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/holm.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

/// The seeds of the best rate's runs.
const std::vector<std::string>& best_seeds(const RunArm& arm) {
  return arm.seeds[static_cast<size_t>(&arm.sweep.best() - arm.sweep.points.data())];
}

JudgedArm summary_of(const RunArm& arm, bool larger_is_better) {
  const Sweep::Point& best = arm.sweep.best();
  const std::vector<double> kept = finite_values(arm.sweep.counted(best.losses));
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  JudgedArm judged{.name = arm.name, .runs = std::ssize(best.losses), .rates = std::ssize(arm.sweep.points)};
  judged.failed =
      std::count_if(best.losses.begin(), best.losses.end(), [&](double loss) { return loss >= arm.sweep.failed_at; });
  const Interval interval = kept.empty() ? Interval{kUnknown, kUnknown, kUnknown, 0} : confidence_interval(kept);
  judged.mean = larger_is_better ? -interval.mean : interval.mean;
  judged.deviation = kept.empty() ? kUnknown : std::sqrt(variance_of(kept));
  if (best.learning_rate > 0) judged.learning_rate = best.learning_rate;
  return judged;
}

ArmComparison compare(const RunArm& baseline, const RunArm& arm, const ArmRule& rule) {
  if (best_seeds(baseline).empty() || best_seeds(arm).empty()) throw Error("an arm has no runs");
  if (rule.by_seed && (best_seeds(baseline) != best_seeds(arm) || best_seeds(arm).front().empty()))
    throw Error(fmt::format("{} and {} have runs of different seeds", baseline.name, arm.name),
                "--by-seed compares runs of the same seed; leave it out, or name the setting with --seed-key");
  ArmComparison comparison;
  if (baseline.sweep.points.size() == 1 && arm.sweep.points.size() == 1) {
    comparison = compare_arms(baseline.sweep.points[0].losses, arm.sweep.points[0].losses, rule);
    if (rule.planned_seeds > 0 && comparison.judgment.outcome == Outcome::undecided &&
        comparison.judgment.reason.empty()) {
      comparison.judgment.reason =
          fmt::format("after {} of {} planned seeds", comparison.judgment.effect.count, rule.planned_seeds);
      comparison.deviation = std::nan("");  // how many would decide is for the plan's last look
    }
    return comparison;
  }
  const auto losses = [&](const std::vector<double>& first, const std::vector<double>& second) {
    comparison = compare_arms(first, second, rule);
    return comparison.judgment;
  };
  const Judgment best = judge_best_by(losses, baseline.sweep, arm.sweep, gain_region(rule));
  // What the sweeps leave open, more seeds do not answer.
  if (best.outcome != comparison.judgment.outcome) comparison.deviation = std::nan("");
  comparison.judgment = best;
  return comparison;
}

/// Judges the arms against the baseline so that all verdicts together err as often as the rule allows (holm.h). Each
/// has the interval of the level at which it was decided, or at which it was not.
std::vector<ArmComparison> compare_all(const RunArm& baseline, const std::vector<const RunArm*>& arms,
                                       const ArmRule& rule) {
  std::vector<ArmComparison> judged(arms.size());
  const std::vector<bool> stands = holm_standing(arms.size(), [&](size_t i, size_t n) {
    ArmRule shared = rule;
    shared.error = rule.error / static_cast<double>(n);
    judged[i] = compare(baseline, *arms[i], shared);
    return is_decided(judged[i].judgment.outcome);
  });
  for (size_t i = 0; i < arms.size(); ++i) {
    if (stands[i]) continue;
    const Outcome alone = compare(baseline, *arms[i], rule).judgment.outcome;
    if (!is_decided(alone)) continue;
    judged[i].judgment.reason =
        fmt::format("{} by itself, but not among {} comparisons", to_string(alone), arms.size());
  }
  return judged;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.5g}", value) : "–"; }

std::string signed_number(double value) {
  return value < 0 ? fmt::format("−{:.3g}", -value) : fmt::format("{:.3g}", value);
}

/// "lr2x: undecided. Its mean is 0.0188 lower; the true difference may be −0.031 to 0.0686 (90% interval)"
std::string pair_text(const JudgedPair& pair, const ArmVerdicts& verdicts) {
  std::string text = fmt::format("{}: {}.", printable(pair.arm), pair.outcome);
  const double gain = std::abs(pair.gain.mean);
  if (pair.gain.count > 1) {
    const bool worse = pair.gain.mean < 0;
    text += fmt::format(" Its mean is {:.3g} {}; the true difference may be {} to {} ({:.3g}% interval{})", gain,
                        worse == verdicts.larger_is_better ? "lower" : "higher",
                        signed_number(worse ? -pair.gain.high : pair.gain.low),
                        signed_number(worse ? -pair.gain.low : pair.gain.high), 100 * pair.confidence,
                        pair.one_run ? " of one new run" : "");
  }
  text += "\n";
  if (!pair.reason.empty()) text += fmt::format("  {}\n", printable(pair.reason));
  if (pair.seeds_needed) {
    text += fmt::format("  if {:.3g} is real, about {} seeds each would show it\n", gain, *pair.seeds_needed);
  } else if (pair.outcome == "undecided" && pair.reason.empty()) {
    text += "  undecidable within 1000 seeds: the means are too close\n";
  }
  return text;
}

/// What the runs were read as; empty without runs.
std::string runs_text(const std::vector<ReadRun>& runs) {
  constexpr size_t kMost = 50;
  if (runs.empty()) return {};
  if (runs.size() > kMost) return fmt::format("{} runs; --json lists them\n\n", runs.size());
  const bool rated = std::any_of(runs.begin(), runs.end(), [](const ReadRun& run) { return run.learning_rate; });
  std::vector<std::vector<std::string>> rows = {{"run", "arm", "state", "seed", "points", "last step", "value"}};
  if (rated) rows[0].emplace_back("rate");
  for (const ReadRun& run : runs) {
    rows.push_back({run.name, run.arm, run.state, run.seed, fmt::format("{}", run.points),
                    std::isfinite(run.last_step) ? fmt::format("{:.10g}", run.last_step) : "–", number(run.value)});
    if (rated) rows.back().push_back(run.learning_rate ? fmt::format("{:g}", *run.learning_rate) : "–");
  }
  return aligned(rows, 3) + "\n";
}

/// "failed: base 0 of 3, wide 1 of 3" in place of numbers alone.
std::string reason_of(const Judgment& judgment, const JudgedArm& baseline, const JudgedArm& arm) {
  const std::string& reason = judgment.reason;
  if (!reason.ends_with("runs failed") || reason.find(';') != std::string::npos) return reason;
  return fmt::format("failed: {} {} of {}, {} {} of {}", baseline.name, baseline.failed, baseline.runs, arm.name,
                     arm.failed, arm.runs);
}

}  // namespace

void describe(Fields& field, JudgedArm& arm) {
  field("name", arm.name);
  field("runs", arm.runs);
  field("failed", arm.failed);
  field("mean", arm.mean);
  field("deviation", arm.deviation);
  field("learning_rate", arm.learning_rate);
  field("rates", arm.rates);
}

void describe(Fields& field, JudgedPair& pair) {
  field("baseline", pair.baseline);
  field("arm", pair.arm);
  field("outcome", pair.outcome);
  field.section("gain", pair.gain);
  field("confidence", pair.confidence);
  field("rule", pair.rule);
  field("reason", pair.reason);
  field("seeds_needed", pair.seeds_needed);
  field("one_run", pair.one_run);
}

void describe(Fields& field, ReadRun& run) {
  field("name", run.name);
  field("arm", run.arm);
  field("seed", run.seed);
  field("learning_rate", run.learning_rate);
  field("points", run.points);
  field("last_step", run.last_step);
  field("state", run.state);
  field("value", run.value);
}

void describe(Fields& field, ArmVerdicts& verdicts) {
  field("metric", verdicts.metric);
  field("larger_is_better", verdicts.larger_is_better);
  field("at", verdicts.at);
  field("margin", verdicts.margin);
  field("noise_floor", verdicts.noise_floor);
  field.sections("arms", verdicts.arms);
  field.sections("pairs", verdicts.pairs);
  field("notes", verdicts.notes);
  field.sections("runs", verdicts.runs);
}

int exit_status(const ArmVerdicts& verdicts) {
  constexpr int kNotBetter = 3, kUndecided = 4;
  const auto any = [&](const auto& is) { return std::any_of(verdicts.pairs.begin(), verdicts.pairs.end(), is); };
  if (any([](const JudgedPair& pair) { return pair.outcome == to_string(Outcome::supported); })) return 0;
  const bool decided = any([](const JudgedPair& pair) {
    return pair.outcome == to_string(Outcome::contradicted) || pair.outcome == to_string(Outcome::smaller);
  });
  return decided ? kNotBetter : kUndecided;
}

ArmVerdicts judge_arms(const RunArms& arms, const ArmRule& rule, const std::string& at, const std::string& baseline) {
  ArmRule limited = rule;
  limited.failed_at = arms.failed_at;
  std::vector<std::string> names;
  for (const RunArm& arm : arms.arms) names.push_back(arm.name);
  if (names.size() < 2) throw UsageError(fmt::format("there is one arm alone: {}", join(names)), "name a second one");
  const auto first = baseline.empty() ? names.begin() : std::find(names.begin(), names.end(), baseline);
  if (first == names.end())
    throw UsageError(fmt::format("no arm is called \"{}\"", baseline), "the arms are: " + join(names));
  const RunArm& against = arms.arms[static_cast<size_t>(first - names.begin())];
  ArmVerdicts verdicts{.metric = arms.metric,
                       .larger_is_better = arms.larger_is_better,
                       .at = at,
                       .margin = rule.margin,
                       .notes = arms.notes,
                       .runs = arms.runs};
  std::vector<std::vector<double>> groups;
  std::vector<const RunArm*> others;
  for (const RunArm& arm : arms.arms) {
    verdicts.arms.push_back(summary_of(arm, arms.larger_is_better));
    for (const Sweep::Point& point : arm.sweep.points) {
      std::vector<double>& learned = groups.emplace_back(point.losses);
      std::erase_if(learned, [&](double loss) { return loss >= arms.failed_at; });
    }
    if (&arm != &against) others.push_back(&arm);
  }
  verdicts.noise_floor = noise_floor(groups);
  const JudgedArm of_baseline = verdicts.arms[static_cast<size_t>(first - names.begin())];
  const std::vector<ArmComparison> compared = compare_all(against, others, limited);
  for (size_t i = 0; i < others.size(); ++i) {
    const ArmComparison& one = compared[i];
    verdicts.pairs.push_back(
        {.baseline = against.name,
         .arm = others[i]->name,
         .outcome = to_string(one.judgment.outcome),
         .gain = one.judgment.effect,
         .confidence = 1 - 2 * one.level,
         .rule = one.judgment.rule,
         .reason = reason_of(one.judgment, of_baseline, *find_by(verdicts.arms, &JudgedArm::name, others[i]->name)),
         .seeds_needed = seeds_needed(one, rule),
         .one_run = one.one_run});
  }
  return verdicts;
}

std::string verdicts_text(const ArmVerdicts& verdicts) {
  const std::string where = verdicts.at == "last"   ? "at the end"
                            : verdicts.at == "best" ? "at its best"
                                                    : "at step " + verdicts.at;
  std::string text = fmt::format("{} {}; {} is better\n\n", printable(verdicts.metric), where,
                                 verdicts.larger_is_better ? "more" : "less") +
                     runs_text(verdicts.runs);
  const bool swept =
      std::any_of(verdicts.arms.begin(), verdicts.arms.end(), [](const JudgedArm& arm) { return arm.rates > 1; });
  std::vector<std::vector<std::string>> rows = {{"arm", "runs", "failed", "mean", "deviation"}};
  if (swept) rows[0].insert(rows[0].end(), {"best rate", "of rates"});
  for (const JudgedArm& arm : verdicts.arms) {
    auto& row = rows.emplace_back(
        std::vector<std::string>{arm.name, fmt::format("{}", arm.runs), fmt::format("{}", arm.failed), number(arm.mean),
                                 std::isfinite(arm.deviation) ? fmt::format("{:.2g}", arm.deviation) : "–"});
    if (swept)
      row.insert(row.end(), {fmt::format("{:g}", arm.learning_rate.value_or(0)), fmt::format("{}", arm.rates)});
  }
  text += aligned(rows, 1);
  text += fmt::format("\nbetter than {}{}?\n", printable(verdicts.pairs.at(0).baseline),
                      verdicts.margin > 0 ? fmt::format(" by more than {:g}", verdicts.margin) : "");
  for (const JudgedPair& pair : verdicts.pairs) text += pair_text(pair, verdicts);
  if (std::isfinite(verdicts.noise_floor))
    text += fmt::format(
        "\nnoise: two runs of one arm differ by up to {:.2g}, in 95 of 100 cases; a single run that is "
        "better by less shows nothing\n",
        verdicts.noise_floor);
  for (const std::string& note : verdicts.notes) text += "note: " + printable(note) + "\n";
  return text;
}

}  // namespace plumb
