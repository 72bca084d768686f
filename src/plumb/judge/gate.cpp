#include "plumb/judge/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/terminal.h"

namespace plumb {
namespace {

constexpr int64_t kLeastSeeds = 3;     // seeds that a candidate needs to be kept, and the best for any comparison
constexpr int64_t kNewer = 3;          // of the best's seeds that confirm a candidate: newer than its first
constexpr double kConfirming = 0.05;   // what a comparison with these alone may err
constexpr int64_t kStale = 10;         // candidates since the best's last seed
constexpr double kHopeless = 0.02;     // the probability of being kept below which a candidate is given up
constexpr double kDrift = 0.01;        // how often the best's last seeds seem to differ from those before
constexpr double kUnlike = 2.25;       // times the common variance: an arm's own noise and degrees count
constexpr double kNoisy = 9;           // times the variance of the best ones: left out of the common one
constexpr int64_t kMostDegrees = 200;  // more change little, and take long to compute
const char* const kMoreSeeds = "more seeds";

std::vector<double> losses_of(const auto& runs) {
  std::vector<double> losses;
  for (const auto& run : runs) losses.push_back(run.loss);
  return losses;
}

/// The share of a candidate's error that looks have spent after n seeds.
double spent(int64_t n, const GateRule& rule) {
  const double share = static_cast<double>(std::min(n, rule.seeds)) / static_cast<double>(rule.seeds);
  return n < kLeastSeeds ? 0 : share * share * share;
}

/// Two arms' means as Student's t compares them.
struct Difference {
  double gain, candidate_variance, best_variance;
  double candidate_count, best_count;
  int64_t degrees;

  [[nodiscard]] double squared_error() const {
    return candidate_variance / candidate_count + best_variance / best_count;
  }
  [[nodiscard]] double half(double level) const {
    return student_t_quantile(1 - level, std::min(degrees, kMostDegrees)) * std::sqrt(squared_error());
  }
};

/// An arm's own spread counts if it is larger than the common one: a single run far away then makes no difference.
/// Where it is much larger, its own degrees of freedom count too.
Difference compared(const std::vector<double>& candidate, const std::vector<double>& best, double variance,
                    int64_t degrees) {
  Difference found{mean_of(best) - mean_of(candidate), variance, variance, static_cast<double>(candidate.size()),
                   static_cast<double>(best.size()),   degrees};
  const auto widen = [&](const std::vector<double>& losses, double& own) {
    if (losses.size() > 1) own = std::max(variance, variance_of(losses));
    if (own > kUnlike * variance) found.degrees = std::min(found.degrees, std::ssize(losses) - 1);
  };
  widen(candidate, found.candidate_variance);
  widen(best, found.best_variance);
  return found;
}

/// The probability that a candidate passes its last look, if nothing is known of its gain but this difference.
double hope(Difference now, int64_t n, int64_t m, double level, const GateRule& rule) {
  Difference last = now;
  const int64_t more = std::max<int64_t>(rule.seeds - m, 0);  // of the best
  last.candidate_count = static_cast<double>(rule.seeds);
  last.best_count = static_cast<double>(m + more);
  last.degrees = now.degrees + rule.seeds - n + more;
  const double missing = rule.margin + last.half(level) - now.gain;
  const double t = missing / std::sqrt(now.squared_error() - last.squared_error());
  const double beyond = (1 - student_t_coverage(std::abs(t), std::min(now.degrees, kMostDegrees))) / 2;
  return t > 0 ? beyond : 1 - beyond;
}

}  // namespace

void describe(Fields& field, GateRule& rule) {
  field("error", rule.error);
  field("margin", rule.margin);
  field("seeds", rule.seeds);
  field("candidates", rule.candidates);
}

void describe(Fields& field, GateAnswer& answer) {
  field("candidate", answer.candidate);
  field("best", answer.best);
  field("decision", answer.decision);
  field("next", answer.next);
  field("reason", answer.reason);
  field.section("gain", answer.gain);
  field("confidence", answer.confidence);
}

std::string gate_text(const GateAnswer& answer) {
  std::string text = fmt::format("{}: {}", printable(answer.candidate), answer.decision);
  if (!answer.next.empty()) text += fmt::format(", the next of {}", printable(answer.next));
  text += fmt::format(" ({})\n", printable(answer.reason));
  if (std::isfinite(answer.gain.mean))
    text += fmt::format("  gain {:.3g} ({:.6g}% interval {:.3g} to {:.3g})\n", answer.gain.mean,
                        100 * answer.confidence, answer.gain.low, answer.gain.high);
  return text;
}

Gate::Gate(const GateRule& rule, const std::string& base) : rule_(rule), arms_{{.name = base, .was_best = true}} {
  if (!(rule.error > 0 && rule.error < 0.5 && rule.margin >= 0 && std::isfinite(rule.margin)))
    throw UsageError(fmt::format("an error of {:g} and a margin of {:g}", rule.error, rule.margin),
                     "the error lies between 0 and 0.5, and the margin is not negative");
  if (rule.seeds < kLeastSeeds || rule.seeds > 50 || rule.candidates < 1 || rule.candidates > 1'000'000)
    throw UsageError(fmt::format("{} seeds for each of {} candidates", rule.seeds, rule.candidates),
                     "plan 3 to 50 seeds for each, and 1 to 1000000 candidates");
}

void Gate::add(const std::string& name, double loss) {
  auto at = std::find_if(arms_.begin(), arms_.end(), [&](const Arm& one) { return one.name == name; });
  if (at == arms_.end()) at = arms_.insert(at, Arm{.name = name, .answer = {.decision = kMoreSeeds}});
  const auto place = static_cast<size_t>(at - arms_.begin());
  at->newest = std::ssize(arms_);
  ++time_;
  if (std::isfinite(loss)) {
    ++at->ended;
    at->runs.push_back({loss, time_});
    const auto equal =
        std::count_if(at->runs.begin(), at->runs.end(), [&](const Run& run) { return run.loss == loss; });
    if (equal >= kLeastSeeds)
      throw Error(fmt::format("{} runs of {} end with the same value", equal, name),
                  "repeat a run with another seed: equal runs say nothing about noise");
  } else if (++at->failed >= kLeastSeeds && at->ended == 0 && place == best_) {
    throw Error(fmt::format("{} runs of {} failed, and none ended well", at->failed, name),
                "begin with an arm that trains");
  }
  if (place != best_) return judge(place);
  leave_out_drift(*at);
  for (size_t k = 1; k < arms_.size(); ++k) {
    if (k != best_ && arms_[k].answer.decision == kMoreSeeds) judge(k);
  }
}

GateAnswer Gate::answer(const std::string& candidate) const {
  if (candidate == arms_.front().name)
    throw UsageError(fmt::format("the series began with {}", candidate), "name a candidate beside it");
  const auto at = std::find_if(arms_.begin(), arms_.end(), [&](const Arm& one) { return one.name == candidate; });
  if (at != arms_.end()) return at->answer;
  Gate with = *this;  // a candidate without runs
  with.arms_.push_back({.name = candidate, .answer = {.decision = kMoreSeeds}});
  return with.judged(with.arms_.size() - 1);
}

std::pair<double, int64_t> Gate::noise() const {
  double squares = 0;
  int64_t degrees = 0;
  const auto add = [&](bool best_ones) {
    const double most = degrees < 5 ? INFINITY : kNoisy * squares / static_cast<double>(degrees);
    for (const Arm& arm : arms_) {
      if (arm.was_best != best_ones || arm.runs.size() < 2) continue;
      const double variance = variance_of(losses_of(arm.runs));
      if (!best_ones && variance > most) continue;
      squares += variance * static_cast<double>(arm.runs.size() - 1);
      degrees += std::ssize(arm.runs) - 1;
    }
  };
  add(true);
  add(false);
  return {degrees == 0 ? 0 : squares / static_cast<double>(degrees), degrees};
}

void Gate::leave_out_drift(Arm& arm) const {
  constexpr int64_t kLatest = 3;
  if (std::ssize(arm.runs) < 2 * kLatest) return;
  const std::vector<double> losses = losses_of(arm.runs);
  const std::vector<double> before(losses.begin(), losses.end() - kLatest),
      latest(losses.end() - kLatest, losses.end());
  const auto squares = [](const std::vector<double>& x) { return variance_of(x) * static_cast<double>(x.size() - 1); };
  const auto [all, degrees] = noise();  // still with the shift between the two parts, which the next line takes out
  const double within = (all * static_cast<double>(degrees) - squares(losses) + squares(before) + squares(latest)) /
                        static_cast<double>(degrees - 1);
  const Difference shift{mean_of(before) - mean_of(latest),  within,     within, static_cast<double>(latest.size()),
                         static_cast<double>(before.size()), degrees - 1};
  if (std::abs(shift.gain) <= shift.half(kDrift / 2)) return;
  arm.runs.erase(arm.runs.begin(), arm.runs.end() - kLatest);
}

void Gate::judge(size_t place) {
  Arm& arm = arms_[place];
  if (arm.answer.decision != kMoreSeeds) return;
  arm.answer = judged(place);
  if (arm.answer.next.empty() || arm.answer.next == arm.name) arm.looked = std::ssize(arm.runs);
  if (arm.answer.decision != "keep") return;
  arm.answer.best = arm.name;
  arm.was_best = true;
  best_ = place;
}

GateAnswer Gate::judged(size_t place) const {
  const Arm& arm = arms_[place];
  const Arm& best = arms_[best_];
  const auto n = std::ssize(arm.runs), m = std::ssize(best.runs);
  GateAnswer answer{.candidate = arm.name, .best = best.name, .decision = kMoreSeeds};
  answer.gain = {std::nan(""), std::nan(""), std::nan(""), n};
  const auto because = [&](std::string decision, const std::string& next, std::string reason) {
    answer.decision = std::move(decision);
    answer.next = next;
    answer.reason = std::move(reason);
    return answer;
  };
  if (m < kLeastSeeds)
    return because(kMoreSeeds, best.name, fmt::format("{} has {} of {} seeds", best.name, m, kLeastSeeds));
  if (std::ssize(arms_) - best.newest > kStale)
    return because(kMoreSeeds, best.name, fmt::format("the last seed of {} is {} candidates old", best.name, kStale + 1));
  if (arm.failed * (best.ended + best.failed) > best.failed * (n + arm.failed))
    return because("reject", "", fmt::format("{} of {} runs failed", arm.failed, n + arm.failed));
  if (n == 0) return because(kMoreSeeds, arm.name, "it has no run");
  if (m < n) return because(kMoreSeeds, best.name, fmt::format("{} has {} seeds, fewer than the candidate", best.name, m));
  const std::string undecided = fmt::format("undecided after {} of {} seeds", n, rule_.seeds);
  answer.gain = arm.answer.gain;
  answer.confidence = arm.answer.confidence;
  if (n == arm.looked) return because(kMoreSeeds, arm.name, undecided);  // a second look at these seeds would err again

  const std::vector<double> losses = losses_of(arm.runs);
  const auto [variance, degrees] = noise();
  const Difference found = compared(losses, losses_of(best.runs), variance, degrees);
  const auto k = static_cast<double>(place), c = static_cast<double>(rule_.candidates);
  const double error = rule_.error * c / ((c + k - 1) * (c + k));
  const double level = error * (spent(std::max(n, kLeastSeeds), rule_) - spent(arm.looked, rule_));
  const double half = found.half(level);
  answer.gain = {found.gain, found.gain - half, found.gain + half, n};
  answer.confidence = 1 - 2 * level;
  if (n >= kLeastSeeds && answer.gain.low > rule_.margin) {
    std::vector<double> newer;
    for (const Run& run : best.runs) {
      if (run.time > arm.runs.front().time) newer.push_back(run.loss);
    }
    if (std::ssize(newer) < kNewer)
      return because(kMoreSeeds, best.name, fmt::format("to be kept, it is compared with newer seeds of {}", best.name));
    const Difference confirming = compared(losses, newer, variance, degrees);
    if (confirming.gain - confirming.half(kConfirming) > rule_.margin)
      return because("keep", "", fmt::format("better after {} seeds", n));
  }
  if (n >= rule_.seeds) return because("reject", "", fmt::format("not better after {} seeds", n));
  const double last = error * (1 - spent(rule_.seeds - 1, rule_));
  if (hope(found, n, m, last, rule_) < kHopeless)
    return because("reject", "", fmt::format("hopeless after {} seed{}", n, n == 1 ? "" : "s"));
  return because(kMoreSeeds, arm.name, undecided);
}

}  // namespace plumb
