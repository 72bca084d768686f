// A learning-rate sweep: final losses by rate and seed, the best rate, and how much the loss depends on the rate.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plumb/analysis/rules.h"

namespace plumb {

/// The final losses of one arm's runs, which differ in learning rate and seed; infinite if the run diverged. A run
/// whose loss is not below `failed_at`, which is that of a model that has learned nothing, has failed as well, and
/// counts with no more than that in means and comparisons.
struct Sweep {
  struct Point {
    double learning_rate = 0;
    std::vector<double> losses;  // by seed
  };
  std::vector<Point> points;  // by increasing learning rate
  double failed_at = kNoLimit;

  /// The rate with the smallest mean loss among those with the fewest failed runs. Throws Error without points.
  [[nodiscard]] const Point& best() const;
  /// Final losses as they count: at most `failed_at`.
  [[nodiscard]] std::vector<double> counted(std::vector<double> losses) const;
  /// The losses at the best rate; infinite if the run failed.
  [[nodiscard]] std::vector<double> best_losses() const;
  /// Why the best rate may lie outside the sweep: "" if rates on both sides are worse.
  [[nodiscard]] std::string open_end() const;
  /// The best rate by interpolation: the vertex of the parabola through the mean losses of the best rate and its
  /// neighbors, against the logarithm of the rate. NaN if the best rate is at an end, or if a run of the three failed.
  [[nodiscard]] double best_between() const;
  /// The points with these learning rates.
  [[nodiscard]] Sweep among(const std::vector<double>& learning_rates) const;
  /// By how much the mean loss of the best rate exceeds the parabola's vertex: what a finer sweep may gain. Infinite
  /// where best_between() is NaN.
  [[nodiscard]] double gain_between() const;
  /// For how many seeds another rate is the best one of the remaining seeds; 0 with one seed.
  [[nodiscard]] int64_t unstable_seeds() const;
  /// Wortsman et al. 2023 (arXiv 2309.14322): the mean over learning rates of min(loss, loss₀) − best loss, where loss₀
  /// is the loss before training, by seed. The interval is over seeds. It depends on which rates were tried: compare
  /// only sweeps of the same ones.
  [[nodiscard]] Interval sensitivity(const std::vector<double>& initial_losses) const;
};

/// Judges the difference of the final losses of two arms, first − second, each at its own best learning rate, seed by
/// seed. Undecided if an arm's best rate is at the end of its sweep, or if the outcome depends on what the arms may
/// gain between the rates of their sweeps: the interval of the difference, widened by the gain of either arm, must have
/// the same outcome. Both sweeps have the same `failed_at`.
Judgment judge_best(const Sweep& first, const Sweep& second, const Region& region, double confidence = kConfidence);

/// The same with another rule for the losses of the two arms, each at its best rate.
using JudgeLosses = std::function<Judgment(const std::vector<double>& first, const std::vector<double>& second)>;
Judgment judge_best_by(const JudgeLosses& rule, const Sweep& first, const Sweep& second, const Region& region);

}  // namespace plumb
