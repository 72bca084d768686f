#include "plumb/analysis/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// Sort key, best first: fewer diverged runs, then the smaller mean of the others.
std::tuple<int64_t, double> badness(const Sweep::Point& point) {
  int64_t diverged = 0;
  double sum = 0;
  for (const double loss : point.losses) std::isfinite(loss) ? void(sum += loss) : void(++diverged);
  const int64_t finished = std::ssize(point.losses) - diverged;
  return {diverged, finished > 0 ? sum / static_cast<double>(finished) : 0.0};
}

}  // namespace

const Sweep::Point& Sweep::best() const {
  if (points.empty()) throw Error("a sweep without learning rates has no best one");
  return *std::min_element(points.begin(), points.end(),
                           [](const Point& a, const Point& b) { return badness(a) < badness(b); });
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
  const Point* middle = &best();
  if (middle == &points.front() || middle == &points.back()) return std::nan("");
  const Point* slower = middle - 1;
  const Point* faster = middle + 1;
  for (const Point* point : {slower, middle, faster}) {
    if (std::get<0>(badness(*point)) > 0) return std::nan("");
  }
  const auto loss = [&](const Point* point) { return std::get<1>(badness(*point)) - std::get<1>(badness(*middle)); };
  const double left = std::log(slower->learning_rate / middle->learning_rate);
  const double right = std::log(faster->learning_rate / middle->learning_rate);
  // a·u² + b·u through (left, loss(slower)), (0, 0) and (right, loss(faster)) has its vertex at −b/(2a).
  const double a = loss(slower) * right - loss(faster) * left;
  const double b = loss(faster) * left * left - loss(slower) * right * right;
  return a > 0 ? middle->learning_rate * std::exp(-b / (2 * a)) : middle->learning_rate;
}

Sweep Sweep::among(const std::vector<double>& learning_rates) const {
  Sweep some;
  std::copy_if(points.begin(), points.end(), std::back_inserter(some.points), [&](const Point& point) {
    return std::find(learning_rates.begin(), learning_rates.end(), point.learning_rate) != learning_rates.end();
  });
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

Judgment judge_best(const Sweep& first, const Sweep& second, const Region& region) {
  Judgment judgment = judge_difference(first.best().losses, second.best().losses, region);
  const bool swept = first.points.size() > 1 && second.points.size() > 1;
  judgment.rule += swept ? "; each arm at its own best learning rate" : "; undecided at a single learning rate";
  const std::string open = first.open_end().empty() ? second.open_end() : first.open_end();
  return undecided_because(judgment, open);
}

}  // namespace plumb
