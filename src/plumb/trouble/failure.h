// Whether a training run has learned anything. A run that fails need not diverge: a cross-entropy often stays finite
// while the logits grow (Haas et al. 2025, arXiv 2505.22491).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

/// All but `learned` and `unfinished` are failures.
enum class Learning {
  learned,                // ends below a model that knows only how frequent each label is
  unfinished,             // does not, but was still falling at its end, or is too short to tell
  frequencies_only,       // does not
  worse_than_uniform,     // ends above a uniform guess
  rose_without_recovery,  // ends far above its own lowest loss
  diverged                // was given up, or its last loss is not finite
};
/// "frequencies-only".
std::string to_string(Learning learning);

/// What the losses of a run's beginning are compared with, in nats per label.
struct Baselines {
  double frequencies = 0;  // of a model that knows only how frequent each label is (task/baseline.h)
  double uniform = 0;      // of a uniform guess, ln(classes)
  double first = 0;        // before the first step
};

/// The training loss of a run, and what it is compared with: negative log-likelihoods in nats per label.
struct LossCurve {
  std::vector<int64_t> steps;  // ascending
  std::vector<double> losses;  // means over the steps since the previous point; of skipped steps alone: NaN
  double frequencies = 0;      // of a model that knows only how frequent each label is (LabelBaseline::nll)
  double uniform = 0;          // of a uniform guess, ln(classes)
  bool diverged = false;       // whether training was given up
};

/// The key `learning` of result.json; see docs/formats/run.md.
struct LearningJudgment {
  Learning learning = Learning::learned;
  double start = 0, lowest = 0, final = 0;  // losses; the last two without spikes
  double frequencies = 0, uniform = 0;      // as in LossCurve
  std::string text{};                       // a sentence with these numbers, without capital and period
  /// The entropy of the frequencies of the validation split's labels, if the run was validated: the most that its
  /// valid_nll counts with in comparisons.
  std::optional<double> valid_frequencies{};

  [[nodiscard]] bool failed() const { return learning != Learning::learned && learning != Learning::unfinished; }
};
void describe(Fields& field, LearningJudgment& judgment);

/// Judges a curve. `final` is the median of the last tenth of its points, at least 3 and at most 9, or, if lower, the
/// mean of the last twentieth, at least 2, which ends when the run does; of fewer than ten points, which are means of
/// many steps each, the last one. `lowest` is the lowest such median, or `final`.
///
/// To have learned, a run must end below `frequencies` by a margin: 0.05 nats or, if that is less, 5% of `frequencies`,
/// since classifiers with few classes have losses below 1. With fewer than 20 steps or 4 points, a run that has not is
/// unfinished.
///
/// A loss has risen without recovery if `final` exceeds `lowest` by five margins, and by half of what had been gained
/// with respect to `frequencies` or, if that is lower, `start`. That frequent labels are frequent is learned in a few
/// steps and seldom lost, so it does not count; with less than half lost, a run is still worth more than its beginning.
///
/// A run is still falling if it ends at its lowest, up to a margin or an eighth of all that it has fallen, and the
/// median of its points has fallen in both of the last two quarters: by two margins each, or by such an eighth, as at a
/// rate that is too low. A run that has reached the frequencies and stays there has not.
LearningJudgment judge_learning(const LossCurve& curve);

}  // namespace plumb
