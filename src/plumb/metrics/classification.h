// Classification metrics: accuracy, F1 and Matthews' correlation of a confusion matrix, with intervals.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/metrics/resampling.h"

namespace plumb {

/// The number of examples for each label and prediction: counts[label · classes + prediction].
struct Confusion {
  int64_t classes = 0;
  std::vector<double> counts;

  [[nodiscard]] double at(int64_t label, int64_t predicted) const {
    return counts[static_cast<size_t>(label * classes + predicted)];
  }
  /// The number of examples.
  [[nodiscard]] double total() const;
};

/// The fraction of examples whose label is predicted; 0 without examples.
double accuracy_of(const Confusion& confusion);

/// The mean of F1 = 2·hits / (present + predicted) over the labels that are present or predicted; 0 without examples.
double macro_f1_of(const Confusion& confusion);

/// Matthews' correlation coefficient for any number of labels (Gorodkin 2004, "Comparing two K-category assignments by
/// a K-category correlation coefficient"). With s examples, c of them right, label k present tₖ and predicted pₖ times:
///   (c·s − Σ tₖ·pₖ) / √((s² − Σ pₖ²)·(s² − Σ tₖ²));  0 if all examples have one label, or one prediction.
double matthews_of(const Confusion& confusion);

/// The 95% interval of a fraction, hits of n > 0 (Wilson 1927): with p = hits/n and z = 1.96,
///   (p + z²/2n ± z·√(p·(1 − p)/n + z²/4n²)) / (1 + z²/n);  the interval's `mean` is p.
SampleInterval wilson_interval(double hits, double n);

/// The 95% bootstrap intervals of macro F1 and of Matthews' correlation, with examples drawn with replacement.
struct ClassificationIntervals {
  SampleInterval f1, matthews;
};
/// Deterministic given the counts and the seed. Throws Error if there are no examples, or on fewer than one sample.
ClassificationIntervals bootstrap_classification(const Confusion& confusion, const Resampling& resampling = {});

}  // namespace plumb
