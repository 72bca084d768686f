// How much a corpus score, and the difference of two, depends on the choice of sentences. Results do not depend on the
// number of threads; with equal seeds, the bootstrap draws the same sentences for every metric and system.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plumb/metrics/corpus_metric.h"

namespace plumb {

/// A 95% interval: from the 2.5% to the 97.5% quantile of samples, with their mean.
struct SampleInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
  [[nodiscard]] double half_width() const { return (high - low) / 2; }
};

/// The bounds are the sorted samples ⌊n/40⌋ from either end, as in sacreBLEU. Throws Error if there are no samples.
SampleInterval interval_of_samples(std::vector<double> samples);

struct Resampling {
  int64_t samples = 1000;
  uint64_t seed = 1;
};

/// The scores of resampled corpora of the same size, with sentences drawn with replacement (Koehn 2004,
/// aclanthology.org/W04-3250): one row of `samples` scores per system. Sample i has the same sentences for every
/// system, so differences of rows are those of a paired bootstrap. Throws Error on fewer than two sentences, systems
/// with different numbers of sentences, or fewer than one sample.
std::vector<std::vector<double>> bootstrap_scores(const CorpusMetric& metric,
                                                  const std::vector<SentenceCounts>& systems,
                                                  const Resampling& resampling = {});

/// The sums over rows of equal length, of which there is at least one: [term].
std::vector<double> sums_of(const std::vector<std::vector<double>>& rows);

/// The sums over rows drawn with replacement, for scores that depend on such sums: [sample][term]. Sample i draws the
/// same rows as in `bootstrap_scores`. Throws Error on fewer than two rows, rows of different lengths, or fewer than
/// one sample.
std::vector<std::vector<double>> bootstrap_sums(const std::vector<std::vector<double>>& rows,
                                                const Resampling& resampling = {});

/// The paired bootstrap's p-value of a `difference` in score, as sacreBLEU defines it: with dᵢ = |systemᵢ − baselineᵢ|
/// in sample i,
///   p = (1 + #{i: dᵢ − mean(d) ≥ |difference|}) / (1 + samples)
/// except that sacreBLEU counts > for ≥, which makes equal systems differ with p = 1 / (1 + samples). Absolute values
/// are taken before the mean is removed, so p is about half that of a two-sided test: at p ≤ 0.05 it calls about 1 in
/// 10 equal pairs different. `randomization_p_value` does not have this flaw. Throws Error on no samples or unequal
/// numbers of samples.
double bootstrap_p_value(const std::vector<double>& baseline, const std::vector<double>& system, double difference);

/// The p-value of approximate randomization (Riezler and Maxwell 2005, aclanthology.org/W05-0908): in each sample the
/// two systems swap each sentence with probability ½, and
///   p = (1 + #{i: |difference of the scores in sample i| ≥ |difference of the scores|}) / (1 + samples)
/// (sacreBLEU: > for ≥). Two-sided. Throws Error if the numbers of sentences differ, or on fewer than one sample.
double randomization_p_value(const CorpusMetric& metric, const SentenceCounts& baseline, const SentenceCounts& system,
                             const Resampling& resampling = {.samples = 10000});

/// The same for scores of the sums of other terms than counts: rows [item][term] of both systems. Throws Error if their
/// numbers differ, or on no items.
using SumScore = std::function<double(std::span<const double> sums, size_t items)>;
double randomization_p_value(const std::vector<std::vector<double>>& baseline,
                             const std::vector<std::vector<double>>& system, const SumScore& score,
                             const Resampling& resampling = {.samples = 10000});

}  // namespace plumb
