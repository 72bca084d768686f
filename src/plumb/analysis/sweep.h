// A sweep of the learning rate: final losses by rate and seed, its best rate, and how much the loss depends on it.
#pragma once

#include <string>
#include <vector>

#include "plumb/analysis/rules.h"

namespace plumb {

/// The final losses of the runs of one arm, which differ in learning rate and seed; infinite: the run diverged.
struct Sweep {
  struct Point {
    double learning_rate = 0;
    std::vector<double> losses;  // by seed
  };
  std::vector<Point> points;  // by growing learning rate

  /// The rate with the smallest mean loss among those with the fewest diverged runs. Throws Error without points.
  [[nodiscard]] const Point& best() const;
  /// Why the best rate may not be the best: "" if rates on both sides of it are worse.
  [[nodiscard]] std::string open_end() const;
  /// The best rate between those of the sweep: the vertex of the parabola of the mean losses against the logarithm of
  /// the rate through the best and its neighbors. NaN if the best is at an end, or a run of the three diverged.
  [[nodiscard]] double best_between() const;
  /// Wortsman et al. 2023 (arXiv 2309.14322): the mean over learning rates of min(loss, loss₀) − best loss,
  /// where loss₀ is the loss before training; over seeds.
  [[nodiscard]] Interval sensitivity(double initial_loss) const;
};

/// Judges the difference of the final losses of two arms, first − second, each at its own best learning rate, seed by
/// seed. Undecided if the best rate of an arm lies at the end of its sweep.
Judgment judge_best(const Sweep& first, const Sweep& second, const Region& region);

}  // namespace plumb
