#include "plumb/trouble/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plumb/trouble/record_fields.h"
#include "plumb/trouble/spikes.h"

namespace plumb {
namespace {

constexpr EnumNames<Learning, 6> kNames = {{{Learning::learned, "learned"},
                                            {Learning::unfinished, "unfinished"},
                                            {Learning::frequencies_only, "frequencies-only"},
                                            {Learning::worse_than_uniform, "worse-than-uniform"},
                                            {Learning::rose_without_recovery, "rose-without-recovery"},
                                            {Learning::diverged, "diverged"}}};

constexpr double kMargin = 0.05;          // nats
constexpr double kRelativeMargin = 0.05;  // of the loss of the frequencies
constexpr int64_t kFewPoints = 10;
constexpr int64_t kLeastPoints = 4, kLeastSteps = 20;  // a shorter run cannot be called a failure

/// The points of a curve with finite losses.
struct Points {
  std::vector<int64_t> steps;
  std::vector<double> losses;

  explicit Points(const LossCurve& curve) {
    for (size_t i = 0; i < curve.losses.size(); ++i) {
      if (!std::isfinite(curve.losses[i])) continue;
      steps.push_back(curve.steps[i]);
      losses.push_back(curve.losses[i]);
    }
  }
  [[nodiscard]] int64_t count() const { return std::ssize(losses); }
  /// The median of points begin, …, end − 1.
  [[nodiscard]] double median_of(int64_t begin, int64_t end) const {
    return median({losses.begin() + begin, losses.begin() + end});
  }
  /// The median of quarter 0, 1, 2 or 3.
  [[nodiscard]] double quarter(int64_t number) const {
    return median_of(number * count() / 4, (number + 1) * count() / 4);
  }
};

bool still_falling(const Points& points, const LearningJudgment& found, double margin) {
  const double middle = points.quarter(1), later = points.quarter(2), last = points.quarter(3);
  const double least = std::min(2 * margin, (found.start - last) / 8);
  const double near = std::max(margin, (found.start - found.lowest) / 8);
  return least > 0 && found.final <= found.lowest + near && middle - later >= least && later - last >= least;
}

/// The step at which `lowest` was reached; sets `lowest` and `final`.
int64_t smooth(const Points& points, LearningJudgment& found) {
  const int64_t count = points.count();
  const int64_t window = std::min(count, std::clamp<int64_t>(count / 10, 3, 9) | 1);
  int64_t lowest_step = 0;
  found.lowest = INFINITY;
  for (int64_t end = window; end <= count; ++end) {
    found.final = points.median_of(end - window, end);
    if (found.final >= found.lowest) continue;
    found.lowest = found.final;
    lowest_step = points.steps[static_cast<size_t>(end - 1 - window / 2)];
  }
  // A median is the loss of some points before the end; the mean of the last ones falls with the run.
  const int64_t last = count < kFewPoints ? 1 : std::max((window + 1) / 2, count / 20);
  found.final = std::min(
      found.final, std::accumulate(points.losses.end() - last, points.losses.end(), 0.0) / static_cast<double>(last));
  if (found.final >= found.lowest) return lowest_step;
  found.lowest = found.final;
  return points.steps.back();
}

}  // namespace

std::string to_string(Learning learning) { return name_of(learning, kNames); }

void describe(Fields& field, LearningJudgment& judgment) {
  named(field, "class", judgment.learning, kNames);
  bool failed = judgment.failed();  // for those who read the document
  field("failed", failed);
  field("start_nll", judgment.start);
  field("lowest_nll", judgment.lowest);
  field("final_nll", judgment.final);
  field("frequencies_nll", judgment.frequencies);
  field("uniform_nll", judgment.uniform);
  field("valid_frequencies_nll", judgment.valid_frequencies);
  field("text", judgment.text);
}

LearningJudgment judge_learning(const LossCurve& curve) {
  LearningJudgment found{.frequencies = curve.frequencies, .uniform = curve.uniform};
  const auto judged = [&found](Learning learning, std::string text) {
    found.learning = learning;
    found.text = std::move(text);
    return found;
  };
  const Points points(curve);
  found.start = found.lowest = found.final = std::nan("");
  int64_t lowest_step = 0;
  if (points.count() > 0) {
    found.start = points.losses.front();
    lowest_step = smooth(points, found);
  }
  if (curve.diverged) return judged(Learning::diverged, "the run diverged");
  if (curve.losses.empty() || !std::isfinite(curve.losses.back()))
    return judged(Learning::diverged, "the training loss is not finite at the end");

  const double margin = std::min(kMargin, kRelativeMargin * curve.frequencies);
  const bool learned = found.final < curve.frequencies - margin || curve.frequencies <= 0;
  const std::string ends = fmt::format("the training loss ends at {:.2f} nats", found.final);
  const std::string frequencies =
      fmt::format("the {:.2f} of a model that knows only how frequent each label is", curve.frequencies);
  const std::string ends_below = fmt::format("{}, below {}", ends, frequencies);
  if (points.count() < kLeastPoints || points.steps.back() < kLeastSteps) {
    if (learned) return judged(Learning::learned, ends_below);
    return judged(Learning::unfinished,
                  fmt::format("{}, not below {}, but the run is too short to tell", ends, frequencies));
  }
  if (!learned && still_falling(points, found, margin)) {
    return judged(Learning::unfinished,
                  fmt::format("{}, not below {}, but was still falling: train for longer, or at a higher learning rate",
                              ends, frequencies));
  }
  if (!learned && found.final > curve.uniform + margin) {
    return judged(Learning::worse_than_uniform,
                  fmt::format("{}, above the {:.2f} of a uniform guess", ends, curve.uniform));
  }
  const double gained = std::min(found.start, curve.frequencies) - found.lowest;
  if (found.final - found.lowest > std::max(5 * margin, gained / 2)) {
    return judged(
        Learning::rose_without_recovery,
        fmt::format("{}, after {:.2f} at step {}: it rose and has not recovered", ends, found.lowest, lowest_step));
  }
  if (learned) return judged(Learning::learned, ends_below);
  // Of two numbers that differ as they are printed, the smaller one is better, if hardly.
  const bool lower =
      found.final < curve.frequencies && fmt::format("{:.2f}", found.final) != fmt::format("{:.2f}", curve.frequencies);
  return judged(Learning::frequencies_only,
                fmt::format("{}, {} better than {}", ends, lower ? "hardly" : "no", frequencies));
}

}  // namespace plumb
