#include "plumb/analysis/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

/// Sort key, best first: fewer failed runs, then the smaller mean as losses count, then as they are where all failed.
std::tuple<int64_t, double, double> badness(const Sweep& sweep, const Sweep::Point& point) {
  const std::vector<double> counted = finite_values(sweep.counted(point.losses)), own = finite_values(point.losses);
  const int64_t failed = std::count_if(point.losses.begin(), point.losses.end(),
                                       [&](double loss) { return !std::isfinite(loss) || loss >= sweep.failed_at; });
  return {failed, counted.empty() ? kNoLimit : mean_of(counted), own.empty() ? kNoLimit : mean_of(own)};
}

/// The mean loss as a parabola of u = ln(rate / best rate), minus that of the best rate: curvature · u² + slope · u.
struct Parabola {
  double curvature = 0;
  double slope = 0;
};

/// Through the means of the best rate and its neighbors; none if the best rate is at an end, or if a run of the three
/// failed. If every run of the best rate did, nothing is learned at any.
std::optional<Parabola> parabola(const Sweep& sweep) {
  const Sweep::Point* middle = &sweep.best();
  if (middle == &sweep.points.front() || middle == &sweep.points.back()) return std::nullopt;
  const Sweep::Point* slower = middle - 1;
  const Sweep::Point* faster = middle + 1;
  const auto failed = [&](const Sweep::Point* point) { return std::get<0>(badness(sweep, *point)); };
  if (failed(middle) == std::ssize(middle->losses) && std::isfinite(sweep.failed_at)) return Parabola{};
  if (failed(slower) + failed(middle) + failed(faster) > 0) return std::nullopt;
  const auto mean = [&](const Sweep::Point* point) { return std::get<1>(badness(sweep, *point)); };
  const double left = std::log(slower->learning_rate / middle->learning_rate);
  const double right = std::log(faster->learning_rate / middle->learning_rate);
  const double below = mean(slower) - mean(middle);
  const double above = mean(faster) - mean(middle);
  const double determinant = left * right * (left - right);
  return Parabola{(below * right - above * left) / determinant,
                  (above * left * left - below * right * right) / determinant};
}

/// Why a finer sweep could change the outcome.
std::string between_rates(double first, double second) {
  const auto gain = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.2g}", value) : std::string("an unknown amount");
  };
  const bool failed = !std::isfinite(first) || !std::isfinite(second);
  return fmt::format(
      "between the rates of their sweeps, the first arm may gain {} and the second {}{}; rates that lie "
      "closer together would tell",
      gain(first), gain(second), failed ? ", as runs failed beside the best rate" : "");
}

}  // namespace

const Sweep::Point& Sweep::best() const {
  if (points.empty()) throw Error("a sweep without learning rates has no best one");
  return *std::min_element(points.begin(), points.end(),
                           [this](const Point& a, const Point& b) { return badness(*this, a) < badness(*this, b); });
}

std::vector<double> Sweep::counted(std::vector<double> losses) const {
  for (double& loss : losses) loss = std::min(loss, failed_at);
  return losses;
}

std::vector<double> Sweep::best_losses() const {
  std::vector<double> losses = best().losses;
  for (double& loss : losses) {
    if (loss >= failed_at) loss = std::numeric_limits<double>::infinity();
  }
  return losses;
}

std::string Sweep::open_end() const {
  if (points.size() < 2) return "one learning rate is no sweep";
  const Point* found = &best();
  if (found == &points.front())
    return fmt::format("the best learning rate, {:g}, is the smallest of the sweep", found->learning_rate);
  if (found == &points.back())
    return fmt::format("the best learning rate, {:g}, is the largest of the sweep", found->learning_rate);
  return {};
}

double Sweep::best_between() const {
  const std::optional<Parabola> fit = parabola(*this);
  if (!fit) return std::nan("");
  const double rate = best().learning_rate;
  return fit->curvature > 0 ? rate * std::exp(-fit->slope / (2 * fit->curvature)) : rate;
}

double Sweep::gain_between() const {
  const std::optional<Parabola> fit = parabola(*this);
  if (!fit) return std::numeric_limits<double>::infinity();
  return fit->curvature > 0 ? fit->slope * fit->slope / (4 * fit->curvature) : 0.0;
}

int64_t Sweep::unstable_seeds() const {
  // Of the seeds that every rate has.
  int64_t seeds = std::numeric_limits<int64_t>::max();
  for (const Point& point : points) seeds = std::min<int64_t>(seeds, std::ssize(point.losses));
  int64_t unstable = 0;
  for (int64_t seed = 0; seed < seeds && seeds > 1 && !points.empty(); ++seed) {
    Sweep rest = *this;
    for (Point& point : rest.points) point.losses.erase(point.losses.begin() + seed);
    unstable += rest.best().learning_rate == best().learning_rate ? 0 : 1;
  }
  return unstable;
}

Sweep Sweep::among(const std::vector<double>& learning_rates) const {
  Sweep some = *this;
  std::erase_if(some.points, [&](const Point& point) { return !contains(learning_rates, point.learning_rate); });
  return some;
}

Interval Sweep::sensitivity(const std::vector<double>& initial_losses) const {
  std::vector<double> by_seed;
  for (size_t seed = 0; !points.empty() && seed < points.front().losses.size(); ++seed) {
    const double initial_loss = initial_losses.at(seed);
    double best_loss = initial_loss;
    double sum = 0;
    for (const Point& point : points) {
      const double loss = std::min(point.losses.at(seed), initial_loss);
      best_loss = std::min(best_loss, loss);
      sum += loss;
    }
    by_seed.push_back(sum / static_cast<double>(points.size()) - best_loss);
  }
  return confidence_interval(by_seed);
}

Judgment judge_best(const Sweep& first, const Sweep& second, const Region& region, double confidence) {
  const auto rule = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return judge_difference(a, b, region, confidence, first.failed_at);
  };
  return judge_best_by(rule, first, second, region);
}

Judgment judge_best_by(const JudgeLosses& rule, const Sweep& first, const Sweep& second, const Region& region) {
  Judgment judgment = rule(first.best().losses, second.best().losses);
  const bool swept = first.points.size() > 1 && second.points.size() > 1;
  if (!swept) {
    judgment.rule += "; undecided at a single learning rate";
  } else {
    judgment.rule +=
        "; each arm at its own best learning rate; undecided if what an arm may gain between the rates of its sweep, "
        "by a parabola, changes the outcome";
  }
  const std::string open = first.open_end().empty() ? second.open_end() : first.open_end();
  if (!open.empty()) return undecided_because(judgment, open);
  Judgment robust = judgment;
  // A verdict by the number of failed runs has no interval to widen.
  const bool by_interval = judgment.reason.empty() || std::isfinite(first.failed_at);
  if (by_interval && is_decided(judgment.outcome)) {
    const double first_gain = first.gain_between();
    const double second_gain = second.gain_between();
    Interval wide = judgment.effect;
    wide.low -= first_gain;
    wide.high += second_gain;
    if (outcome_of(wide, region) != judgment.outcome)
      robust = undecided_because(judgment, between_rates(first_gain, second_gain));
  }
  const int64_t unstable = first.unstable_seeds() + second.unstable_seeds();
  if (unstable > 0) {
    const std::string note =
        fmt::format("without one of the seeds, another learning rate is the best one of an arm ({} of {} cases)",
                    unstable, first.best().losses.size() + second.best().losses.size());
    robust.reason = robust.reason.empty() ? note : robust.reason + "; " + note;
  }
  return robust;
}

}  // namespace plumb
