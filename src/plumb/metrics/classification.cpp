#include "plumb/metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

/// How often each label is present, and how often it is predicted.
struct Margins {
  std::vector<double> present, predicted;
};

Margins margins_of(const Confusion& confusion) {
  const auto classes = static_cast<size_t>(confusion.classes);
  Margins margins{std::vector<double>(classes, 0), std::vector<double>(classes, 0)};
  for (size_t i = 0; i < confusion.counts.size(); ++i) {
    margins.present[i / classes] += confusion.counts[i];
    margins.predicted[i % classes] += confusion.counts[i];
  }
  return margins;
}

double hits_of(const Confusion& confusion) {
  double hits = 0;
  for (int64_t label = 0; label < confusion.classes; ++label) hits += confusion.at(label, label);
  return hits;
}

}  // namespace

double Confusion::total() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }

double accuracy_of(const Confusion& confusion) {
  const double all = confusion.total();
  return all > 0 ? hits_of(confusion) / all : 0;
}

double macro_f1_of(const Confusion& confusion) {
  const Margins margins = margins_of(confusion);
  double sum = 0, labels = 0;
  for (int64_t label = 0; label < confusion.classes; ++label) {
    const auto at = static_cast<size_t>(label);
    const double both = margins.present[at] + margins.predicted[at];
    if (both == 0) continue;
    sum += 2 * confusion.at(label, label) / both;
    ++labels;
  }
  return labels > 0 ? sum / labels : 0;
}

double matthews_of(const Confusion& confusion) {
  const Margins margins = margins_of(confusion);
  const double all = confusion.total();
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const double spread = (all * all - product(margins.predicted, margins.predicted)) *
                        (all * all - product(margins.present, margins.present));
  if (!(spread > 0)) return 0;
  return (hits_of(confusion) * all - product(margins.present, margins.predicted)) / std::sqrt(spread);
}

SampleInterval wilson_interval(double hits, double n) {
  constexpr double kQuantile = 1.959963984540054;
  const double p = hits / n, square = kQuantile * kQuantile / n;
  const double center = (p + square / 2) / (1 + square);
  const double half = kQuantile * std::sqrt(p * (1 - p) / n + square / (4 * n)) / (1 + square);
  return {p, std::max(0.0, center - half), std::min(1.0, center + half)};
}

ClassificationIntervals bootstrap_classification(const Confusion& confusion, const Resampling& resampling) {
  const auto examples = static_cast<uint64_t>(confusion.total());
  if (examples == 0) throw Error("there are no examples to draw");
  if (resampling.samples < 1) throw Error("the bootstrap needs at least one sample");
  std::vector<uint64_t> ends;  // cumulative counts
  uint64_t end = 0;
  for (const double count : confusion.counts) ends.push_back(end += static_cast<uint64_t>(count));
  Random random(resampling.seed, "classification bootstrap");
  std::vector<double> f1, matthews;
  Confusion drawn{confusion.classes, {}};
  for (int64_t sample = 0; sample < resampling.samples; ++sample) {
    drawn.counts.assign(confusion.counts.size(), 0);
    for (uint64_t i = 0; i < examples; ++i) {
      const auto entry = std::upper_bound(ends.begin(), ends.end(), random.below(examples)) - ends.begin();
      ++drawn.counts[static_cast<size_t>(entry)];
    }
    f1.push_back(macro_f1_of(drawn));
    matthews.push_back(matthews_of(drawn));
  }
  return {interval_of_samples(std::move(f1)), interval_of_samples(std::move(matthews))};
}

}  // namespace plumb
