#include "plumb/analysis/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::string rule_of(const Region& region, const char* interval) {
  const bool low = std::isfinite(region.low);
  const bool high = std::isfinite(region.high);
  const auto number = [](double value) {
    return value < 0 ? fmt::format("−{:.3g}", -value) : fmt::format("{:.3g}", value);
  };
  const std::string where = low && high ? fmt::format("between {} and {}", number(region.low), number(region.high))
                            : low       ? fmt::format("above {}", number(region.low))
                                        : fmt::format("below {}", number(region.high));
  return fmt::format("supported if all of the {} lies {}, contradicted if none of it does", interval, where);
}

Outcome outcome_of(const Interval& interval, const Region& region) {
  if (interval.low > region.low && interval.high < region.high) return Outcome::supported;
  if (interval.high <= region.low || interval.low >= region.high) return Outcome::contradicted;
  return Outcome::undecided;
}

/// [s]: the fraction of the n! orders of n values that have s discordant pairs (Mahonian numbers).
std::vector<double> discordant_pairs(size_t n) {
  std::vector<double> share = {1};
  for (size_t k = 2; k <= n; ++k) {
    std::vector<double> next(share.size() + k - 1, 0);
    for (size_t s = 0; s < share.size(); ++s) {
      for (size_t more = 0; more < k; ++more) next[s + more] += share[s] / static_cast<double>(k);
    }
    share = std::move(next);
  }
  return share;
}

std::vector<double> convolved(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size() + b.size() - 1, 0);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  }
  return sum;
}

/// ln(n choose k).
double log_choose(int64_t n, int64_t k) {
  const auto gamma = [](int64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return gamma(n) - gamma(k) - gamma(n - k);
}

}  // namespace

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::supported:
      return "supported";
    case Outcome::contradicted:
      return "contradicted";
    case Outcome::undecided:
      return "undecided";
    case Outcome::not_testable:
      return "not testable here";
  }
  return "undecided";
}

Judgment judge(const std::vector<double>& values, const Region& region, Scale scale) {
  const bool logarithmic = scale == Scale::logarithmic;
  Judgment judgment;
  judgment.rule = rule_of(region, logarithmic ? "95% interval of the ratio" : "95% interval");
  std::vector<double> usable;
  for (const double value : values) {
    if (std::isfinite(value) && (!logarithmic || value > 0)) usable.push_back(logarithmic ? std::log(value) : value);
  }
  if (usable.empty()) {
    judgment.effect = {kUnknown, kUnknown, kUnknown, 0};
    judgment.reason = "nothing was measured";
    return judgment;
  }
  Interval interval = confidence_interval(usable);
  if (logarithmic)
    interval = {std::exp(interval.mean), std::exp(interval.low), std::exp(interval.high), interval.count};
  judgment.effect = interval;
  if (usable.size() < values.size()) {
    judgment.reason = fmt::format("{} of {} seeds gave no number", values.size() - usable.size(), values.size());
  } else if (interval.count < 2) {
    judgment.reason = "one seed has no interval";
  } else {
    judgment.outcome = outcome_of(interval, region);
  }
  return judgment;
}

Judgment judge_each(const std::vector<Condition>& conditions) {
  if (conditions.empty()) throw Error("a claim about conditions has none");
  const double confidence = 1 - 0.05 / static_cast<double>(conditions.size());
  Judgment worst;
  double least = std::numeric_limits<double>::infinity();
  bool supported = true;
  bool contradicted = false;
  for (const Condition& condition : conditions) {
    const Judgment one = judge(condition.values, condition.region);
    supported &= one.outcome == Outcome::supported;
    contradicted |=
        one.outcome == Outcome::contradicted &&
        outcome_of(confidence_interval(condition.values, confidence), condition.region) == Outcome::contradicted;
    const double room = one.effect.count > 0
                            ? std::min(one.effect.mean - condition.region.low, condition.region.high - one.effect.mean)
                            : -std::numeric_limits<double>::infinity();
    if (room >= least) continue;
    least = room;
    worst = one;
  }
  worst.outcome = supported ? Outcome::supported : contradicted ? Outcome::contradicted : Outcome::undecided;
  worst.rule = fmt::format(
      "in each of {} conditions, of which this is the one with the least room: {} (contradicted: at a confidence of "
      "{:.3g}%)",
      conditions.size(), worst.rule, 100 * confidence);
  return worst;
}

Judgment judge_difference(const std::vector<double>& first, const std::vector<double>& second, const Region& region) {
  if (first.size() != second.size())
    throw Error(
        fmt::format("two arms have {} and {} runs; they are compared seed by seed", first.size(), second.size()));
  std::vector<double> differences;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!std::isinf(first[i]) && !std::isinf(second[i])) differences.push_back(first[i] - second[i]);
  }
  Judgment judgment = judge(differences, region);
  const auto diverged = [](const std::vector<double>& losses) {
    return static_cast<int64_t>(std::count_if(losses.begin(), losses.end(), [](double x) { return std::isinf(x); }));
  };
  const auto runs = static_cast<int64_t>(first.size());
  const int64_t of_first = diverged(first);
  const int64_t of_second = diverged(second);
  if (of_first + of_second == 0) return judgment;
  judgment.outcome = Outcome::undecided;
  judgment.rule += "; an arm that diverges more often (Fisher's exact test, 5%) counts as worse";
  judgment.reason = fmt::format("{} and {} of {} runs diverged", of_first, of_second, runs);
  if (of_first == runs && of_second == runs) {
    judgment.outcome = Outcome::not_testable;
    judgment.reason = "every run diverged";
  } else if (divergence_p_value(of_first, runs, of_second, runs) <= 0.05) {
    judgment.outcome = std::isinf(region.high) ? Outcome::supported : Outcome::contradicted;
  } else if (divergence_p_value(of_second, runs, of_first, runs) <= 0.05) {
    judgment.outcome = std::isinf(region.low) ? Outcome::supported : Outcome::contradicted;
  }
  return judgment;
}

Judgment judge_growth(const std::vector<std::vector<double>>& values) {
  Judgment judgment;
  judgment.rule =
      "supported if the order over the conditions is growing, contradicted if it is falling, with p ≤ 0.025 (exact "
      "distribution of Kendall's S, summed over the seeds)";
  const size_t conditions = values.empty() ? 0 : values.front().size();
  std::vector<double> taus;
  std::vector<double> distribution = {1};
  size_t discordant = 0;  // ties included
  size_t falling_pairs = 0;
  for (const std::vector<double>& seed : values) {
    if (seed.size() != conditions || conditions < 2)
      throw Error(fmt::format("a trend over {} conditions has a seed with {}", conditions, seed.size()));
    int64_t s = 0;
    for (size_t i = 0; i < conditions; ++i) {
      if (!std::isfinite(seed[i])) {
        judgment.effect = {kUnknown, kUnknown, kUnknown, 0};
        judgment.reason = "a condition gave no number";
        return judgment;
      }
      for (size_t j = i + 1; j < conditions; ++j) {
        s += (seed[j] > seed[i] ? 1 : 0) - (seed[j] < seed[i] ? 1 : 0);
        discordant += seed[j] > seed[i] ? 0 : 1;
        falling_pairs += seed[j] < seed[i] ? 1 : 0;
      }
    }
    const auto pairs = static_cast<double>(conditions * (conditions - 1)) / 2;
    taus.push_back(static_cast<double>(s) / pairs);
    distribution = convolved(distribution, discordant_pairs(conditions));
  }
  if (taus.empty()) {
    judgment.effect = {kUnknown, kUnknown, kUnknown, 0};
    judgment.reason = "nothing was measured";
    return judgment;
  }
  judgment.effect = confidence_interval(taus);
  double growing = 0;  // P(at most this many discordant pairs)
  for (size_t s = 0; s <= discordant; ++s) growing += distribution[s];
  double falling = 0;  // P(at least this many)
  for (size_t s = falling_pairs; s < distribution.size(); ++s) falling += distribution[s];
  if (growing <= 0.025) judgment.outcome = Outcome::supported;
  if (falling <= 0.025) judgment.outcome = Outcome::contradicted;
  judgment.reason = fmt::format("p = {:.2g}", std::min(growing, falling));
  return judgment;
}

double divergence_p_value(int64_t first, int64_t first_runs, int64_t second, int64_t second_runs) {
  const int64_t diverged = first + second;
  const int64_t runs = first_runs + second_runs;
  double p = 0;
  for (int64_t k = first; k <= std::min(diverged, first_runs); ++k) {
    if (diverged - k > second_runs) continue;
    p += std::exp(log_choose(first_runs, k) + log_choose(second_runs, diverged - k) - log_choose(runs, diverged));
  }
  return std::min(p, 1.0);
}

Judgment not_testable_because(Judgment judgment, const std::string& reason) {
  if (reason.empty()) return judgment;
  judgment.outcome = Outcome::not_testable;
  judgment.reason = judgment.reason.empty() ? reason : reason + "; " + judgment.reason;
  return judgment;
}

Judgment undecided_because(Judgment judgment, const std::string& reason) {
  const bool decided = judgment.outcome == Outcome::supported || judgment.outcome == Outcome::contradicted;
  if (reason.empty() || !decided) return judgment;
  judgment.outcome = Outcome::undecided;
  judgment.reason = judgment.reason.empty() ? reason : reason + "; " + judgment.reason;
  return judgment;
}

}  // namespace plumb
