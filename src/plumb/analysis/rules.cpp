#include "plumb/analysis/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A level and as much more as rounding may add to a p-value that is exactly as large, such as 5% for 3 of 3 runs
/// against 0 of 3.
double with_rounding(double level) { return level * (1 + 1e-9); }

std::string in_digits(double value) {
  return value < 0 ? fmt::format("−{:.3g}", -value) : fmt::format("{:.3g}", value);
}

std::string rule_of(const Region& region, const std::string& interval) {
  const bool low = std::isfinite(region.low);
  const bool high = std::isfinite(region.high);
  const std::string where = low && high
                                ? fmt::format("between {} and {}", in_digits(region.low), in_digits(region.high))
                            : low ? fmt::format("above {}", in_digits(region.low))
                                  : fmt::format("below {}", in_digits(region.high));
  const auto beyond = [low](double bound) { return (low ? "below " : "above ") + in_digits(bound); };
  const std::string outside = low && high ? "outside of that" : beyond(low ? region.low : region.high);
  const std::string supported = fmt::format("supported: the {} lies {}", interval, where);
  if (std::isnan(region.null)) return fmt::format("{}; contradicted: {}", supported, outside);
  return fmt::format("{}; contradicted: {}; no effect of that size: {}", supported, beyond(region.null), outside);
}

/// Why so few values decide nothing; "" if they suffice.
std::string too_few(int64_t seeds) {
  if (seeds < 2) return "one seed has no interval";
  return seeds < 3 ? "two seeds never decide" : "";
}

/// n choose k, exactly: k ≤ n.
double choose(int64_t n, int64_t k) {
  double product = 1;
  for (int64_t i = 1; i <= k; ++i) product = product * static_cast<double>(n - k + i) / static_cast<double>(i);
  return product;
}

/// The room to the nearer end of the region; negative outside of it.
double room_in(const Region& region, const Interval& effect) {
  if (effect.count == 0) return -std::numeric_limits<double>::infinity();
  return std::min(effect.mean - region.low, region.high - effect.mean);
}

/// The interval of the mean, or of the geometric mean, with this confidence; the values suit the scale.
Interval interval_at(const std::vector<double>& values, double confidence, Scale scale) {
  return scale == Scale::linear ? confidence_interval(values, confidence) : geometric_interval(values, confidence);
}

std::string in_words(const Interval& effect) {
  return fmt::format("{} ({} to {})", in_digits(effect.mean), in_digits(effect.low), in_digits(effect.high));
}

}  // namespace

std::string to_string(Outcome outcome) {
  constexpr std::array<const char*, 5> kNames = {"supported", "contradicted", "no effect of that size", "undecided",
                                                 "this setting cannot test it"};
  return kNames.at(static_cast<size_t>(outcome));
}

Judgment judge(const std::vector<double>& values, const Region& region, Scale scale, double confidence) {
  const bool logarithmic = scale == Scale::logarithmic;
  Judgment judgment;
  judgment.rule =
      rule_of(region, fmt::format("{:.3g}% interval{}", 100 * confidence, logarithmic ? " of the ratio" : ""));
  std::vector<double> usable;
  for (const double value : values) {
    if (std::isfinite(value) && (!logarithmic || value > 0)) usable.push_back(value);
  }
  if (usable.empty()) {
    judgment.effect = {kUnknown, kUnknown, kUnknown, 0};
    judgment.reason = "nothing was measured";
    return judgment;
  }
  const Interval interval = interval_at(usable, confidence, scale);
  judgment.effect = interval;
  if (usable.size() < values.size()) {
    judgment.reason = fmt::format("{} of {} seeds gave no number", values.size() - usable.size(), values.size());
  } else if (judgment.reason = too_few(interval.count); judgment.reason.empty()) {
    judgment.outcome = outcome_of(interval, region);
  }
  return judgment;
}

Judgment judge_interval(const Interval& effect, const Region& region, const std::string& interval) {
  Judgment judgment{.effect = effect, .rule = rule_of(region, interval), .reason = too_few(effect.count)};
  if (judgment.reason.empty()) judgment.outcome = outcome_of(effect, region);
  return judgment;
}

Outcome outcome_of(const Interval& interval, const Region& region) {
  // An interval may be open on a side on which the region is open, too.
  if ((interval.low > region.low || std::isinf(region.low)) && (interval.high < region.high || std::isinf(region.high)))
    return Outcome::supported;
  if (interval.high <= region.low)
    return std::isnan(region.null) || interval.high <= region.null ? Outcome::contradicted : Outcome::smaller;
  if (interval.low >= region.high)
    return std::isnan(region.null) || interval.low >= region.null ? Outcome::contradicted : Outcome::smaller;
  return Outcome::undecided;
}

Judgment judge_each(const std::vector<Condition>& conditions, Scale scale, double confidence) {
  if (conditions.empty()) throw Error("a claim about conditions has none");
  const double stricter = 1 - (1 - confidence) / static_cast<double>(conditions.size());
  Judgment worst;
  // Not contradicted, supported, room.
  std::tuple<bool, bool, double> least = {true, true, std::numeric_limits<double>::infinity()};
  bool supported = true;
  bool contradicted = false;
  bool smaller = false;
  for (const Condition& condition : conditions) {
    const Judgment one = judge(condition.values, condition.region, scale, confidence);
    supported &= one.outcome == Outcome::supported;
    const bool outside = one.outcome == Outcome::contradicted || one.outcome == Outcome::smaller;
    const Outcome surely =
        outside ? outcome_of(interval_at(condition.values, stricter, scale), condition.region) : Outcome::undecided;
    const bool contradicts = surely == Outcome::contradicted;
    contradicted |= contradicts;
    smaller |= surely == Outcome::smaller;
    const std::tuple<bool, bool, double> room = {!contradicts, one.outcome == Outcome::supported,
                                                 room_in(condition.region, one.effect)};
    if (room >= least) continue;
    least = room;
    worst = one;
  }
  worst.outcome = supported      ? Outcome::supported
                  : contradicted ? Outcome::contradicted
                  : smaller      ? Outcome::smaller
                                 : Outcome::undecided;
  worst.rule = fmt::format(
      "in each of {} conditions, of which this is the worst: {} (contradicted: at a confidence of "
      "{:.3g}%)",
      conditions.size(), worst.rule, 100 * stricter);
  return worst;
}

Judgment judge_readings(const std::vector<QuantityReading>& readings, const Region& region, Scale scale,
                        double confidence) {
  if (readings.empty()) throw Error("a claim has no reading of its quantity");
  Judgment judgment = judge(readings.front().values, region, scale, confidence);
  judgment.rule += "; decided only if every reading of the quantity gives the same outcome";
  bool agree = true;
  std::string others;
  for (size_t i = 1; i < readings.size(); ++i) {
    const Judgment other = judge(readings[i].values, region, scale, confidence);
    agree &= other.outcome == judgment.outcome;
    others += fmt::format("{}{}: {}", others.empty() ? "" : "; ", readings[i].name, in_words(other.effect));
  }
  if (!others.empty()) judgment.reason = judgment.reason.empty() ? others : judgment.reason + "; " + others;
  if (!agree) judgment.outcome = Outcome::undecided;
  return judgment;
}

Judgment judge_prediction(const std::vector<double>& errors, const std::vector<double>& guess_errors,
                          const std::string& guess, double margin, double confidence) {
  const Region close = Region::around(0, margin);
  Judgment judgment = judge(errors, close, Scale::linear, confidence);
  const Judgment without_law = judge(guess_errors, close, Scale::linear, confidence);
  judgment.rule += fmt::format("; supported only if the interval of the errors of {} lies outside", guess);
  if (judgment.outcome != Outcome::supported || without_law.outcome == Outcome::contradicted) return judgment;
  return undecided_because(judgment,
                           fmt::format("{} may predict as well: off by {}", guess, in_words(without_law.effect)));
}

Judgment judge_difference(const std::vector<double>& first, const std::vector<double>& second, const Region& region,
                          double confidence, double failed_at) {
  if (first.size() != second.size())
    throw Error(
        fmt::format("two arms have {} and {} runs; they are compared seed by seed", first.size(), second.size()));
  std::vector<double> differences;
  for (size_t i = 0; i < first.size(); ++i) {
    const double a = std::min(first[i], failed_at), b = std::min(second[i], failed_at);
    if (!std::isinf(a) && !std::isinf(b)) differences.push_back(a - b);
  }
  return with_failed_runs(judge(differences, region, Scale::linear, confidence), first, second, region, confidence,
                          failed_at);
}

Judgment with_failed_runs(Judgment judgment, const std::vector<double>& first, const std::vector<double>& second,
                          const Region& region, double confidence, double failed_at) {
  const auto failed = [&](const std::vector<double>& losses) {
    return static_cast<int64_t>(std::count_if(losses.begin(), losses.end(), [&](double x) { return x >= failed_at; }));
  };
  const auto of_first = std::ssize(first);
  const auto of_second = std::ssize(second);
  const int64_t first_failed = failed(first);
  const int64_t second_failed = failed(second);
  if (first_failed + second_failed == 0) return judgment;
  const bool counted = std::isinf(failed_at);  // and not averaged
  if (counted) judgment.outcome = Outcome::undecided;
  const double level = 1 - confidence;
  judgment.rule +=
      counted
          ? fmt::format("; an arm that fails more often (Fisher's exact test, {:.3g}%) counts as worse", 100 * level)
          : fmt::format("; no run counts with more than {:.2f}, at which it has learned nothing", failed_at);
  judgment.reason =
      of_first == of_second
          ? fmt::format("{} and {} of {} runs failed", first_failed, second_failed, of_first)
          : fmt::format("{} of {} and {} of {} runs failed", first_failed, of_first, second_failed, of_second);
  if (first_failed == of_first && second_failed == of_second) {
    judgment.outcome = Outcome::not_testable;
    judgment.reason = "every run failed";
  } else if (!counted) {
    return judgment;
  } else if (failure_p_value(first_failed, of_first, second_failed, of_second) <= with_rounding(level)) {
    judgment.outcome = std::isinf(region.high) ? Outcome::supported : Outcome::contradicted;
  } else if (failure_p_value(second_failed, of_second, first_failed, of_first) <= with_rounding(level)) {
    judgment.outcome = std::isinf(region.low) ? Outcome::supported : Outcome::contradicted;
  }
  return judgment;
}

double failure_p_value(int64_t first, int64_t first_runs, int64_t second, int64_t second_runs) {
  const int64_t failed = first + second;
  double ways = 0;
  for (int64_t k = first; k <= std::min(failed, first_runs); ++k) {
    if (failed - k <= second_runs) ways += choose(first_runs, k) * choose(second_runs, failed - k);
  }
  return ways / choose(first_runs + second_runs, failed);
}

bool is_decided(Outcome outcome) { return outcome != Outcome::undecided && outcome != Outcome::not_testable; }

Judgment not_testable_because(Judgment judgment, const std::string& reason) {
  if (reason.empty()) return judgment;
  judgment.outcome = Outcome::not_testable;
  judgment.reason = judgment.reason.empty() ? reason : reason + "; " + judgment.reason;
  return judgment;
}

Judgment undecided_because(Judgment judgment, const std::string& reason) {
  if (reason.empty() || !is_decided(judgment.outcome)) return judgment;
  judgment.outcome = Outcome::undecided;
  judgment.reason = judgment.reason.empty() ? reason : reason + "; " + judgment.reason;
  return judgment;
}

}  // namespace plumb
