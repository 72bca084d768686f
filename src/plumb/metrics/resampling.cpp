#include "plumb/metrics/resampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

// Scores this close are equal up to rounding and must count as ties, which are frequent between error rates.
constexpr double kTie = 1e-10;

// Each sample has its own random stream, so samples may be drawn in any order.
Random numbers_of_sample(const Resampling& resampling, std::string_view purpose, int64_t sample) {
  return {resampling.seed, stream_of(purpose) + static_cast<uint64_t>(sample)};
}

void require_samples(const Resampling& resampling) {
  if (resampling.samples < 1) throw Error(fmt::format("{} samples", resampling.samples), "draw at least one");
}

void require_several(size_t items, std::string_view kind) {
  if (items >= 2) return;
  throw Error(
      fmt::format("a bootstrap of {} {}{}", items, kind, items == 1 ? "" : "s"),
      fmt::format("an interval says how scores vary with the choice of {}s, which takes at least 2 of them", kind));
}

void require_same_sentences(size_t first, size_t other) {
  if (first == other) return;
  throw Error(fmt::format("systems of {} and of {} sentences cannot be compared", first, other),
              "compare translations of the same text");
}

// How often each of n sentences is drawn in n draws.
void draw_with_replacement(Random random, std::vector<int64_t>& times) {
  std::fill(times.begin(), times.end(), 0);
  for (size_t draw = 0; draw < times.size(); ++draw) ++times[random.below(times.size())];
}

void add_weighted_rows(const SentenceCounts& counts, const std::vector<int64_t>& weights, std::vector<int64_t>& sums) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const std::span<const int64_t> row = counts[i];
    for (size_t k = 0; k < row.size(); ++k) sums[k] += weights[i] * row[k];
  }
}

// The changes in the baseline's counts when it swaps sentences with the system: one row per sentence that differs.
std::vector<std::vector<int64_t>> differing_rows(const SentenceCounts& baseline, const SentenceCounts& system) {
  std::vector<std::vector<int64_t>> rows;
  for (size_t i = 0; i < baseline.sentences(); ++i) {
    if (std::equal(baseline[i].begin(), baseline[i].end(), system[i].begin())) continue;
    std::vector<int64_t>& row = rows.emplace_back(baseline.width());
    std::transform(system[i].begin(), system[i].end(), baseline[i].begin(), row.begin(), std::minus());
  }
  return rows;
}

// Adds each row with probability ½.
template <typename Number>
void add_half_of(const std::vector<std::vector<Number>>& rows, Random random, std::vector<Number>& sums) {
  for (size_t begin = 0; begin < rows.size(); begin += 32) {
    for (uint32_t chosen = random.next(); chosen != 0; chosen &= chosen - 1) {
      const size_t i = begin + static_cast<size_t>(std::countr_zero(chosen));
      if (i >= rows.size()) break;
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += rows[i][k];
    }
  }
}

double p_value(int64_t as_extreme, int64_t samples) {
  return static_cast<double>(as_extreme + 1) / static_cast<double>(samples + 1);
}

// The p-value of approximate randomization, from the changes that swaps make in the sums of the baseline.
template <typename Number, typename Score>
double randomization(const std::vector<std::vector<Number>>& rows, const std::vector<Number>& of_baseline,
                     const std::vector<Number>& of_system, const Score& score, const Resampling& resampling) {
  const double difference = std::abs(score(of_system) - score(of_baseline));
  std::vector<char> as_extreme(static_cast<size_t>(resampling.samples));
  parallel_ranges(resampling.samples, 64, [&](int64_t begin, int64_t end) {
    for (int64_t sample = begin; sample < end; ++sample) {
      std::vector<Number> swapped = of_baseline;
      add_half_of(rows, numbers_of_sample(resampling, "randomization", sample), swapped);
      std::vector<Number> rest(swapped.size());
      for (size_t k = 0; k < rest.size(); ++k) rest[k] = of_baseline[k] + of_system[k] - swapped[k];
      const double found = std::abs(score(swapped) - score(rest));
      as_extreme[static_cast<size_t>(sample)] = found >= difference - kTie ? 1 : 0;
    }
  });
  return p_value(std::count(as_extreme.begin(), as_extreme.end(), 1), resampling.samples);
}

}  // namespace

SampleInterval interval_of_samples(std::vector<double> samples) {
  if (samples.empty()) throw Error("an interval of no samples");
  std::sort(samples.begin(), samples.end());
  const size_t outside = samples.size() / 40;
  return {.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size()),
          .low = samples[outside],
          .high = samples[samples.size() - 1 - outside]};
}

std::vector<std::vector<double>> bootstrap_scores(const CorpusMetric& metric,
                                                  const std::vector<SentenceCounts>& systems,
                                                  const Resampling& resampling) {
  require_samples(resampling);
  if (systems.empty()) return {};
  const size_t sentences = systems.front().sentences();
  for (const SentenceCounts& system : systems) require_same_sentences(sentences, system.sentences());
  require_several(sentences, "sentence");
  std::vector<std::vector<double>> scores(systems.size(), std::vector<double>(static_cast<size_t>(resampling.samples)));
  parallel_ranges(resampling.samples, 16, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> times(sentences);
    for (int64_t sample = begin; sample < end; ++sample) {
      draw_with_replacement(numbers_of_sample(resampling, "bootstrap", sample), times);
      for (size_t system = 0; system < systems.size(); ++system) {
        std::vector<int64_t> sums(metric.width);
        add_weighted_rows(systems[system], times, sums);
        scores[system][static_cast<size_t>(sample)] = metric.score(sums);
      }
    }
  });
  return scores;
}

std::vector<double> sums_of(const std::vector<std::vector<double>>& rows) {
  std::vector<double> sums(rows.front().size());
  for (const auto& row : rows) std::transform(row.begin(), row.end(), sums.begin(), sums.begin(), std::plus());
  return sums;
}

std::vector<std::vector<double>> bootstrap_sums(const std::vector<std::vector<double>>& rows,
                                                const Resampling& resampling) {
  require_samples(resampling);
  require_several(rows.size(), "item");
  const size_t width = rows.front().size();
  for (const auto& row : rows) {
    if (row.size() != width) throw Error(fmt::format("items of {} and of {} terms", width, row.size()));
  }
  std::vector<std::vector<double>> sums(static_cast<size_t>(resampling.samples), std::vector<double>(width));
  parallel_ranges(resampling.samples, 16, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> times(rows.size());
    for (int64_t sample = begin; sample < end; ++sample) {
      draw_with_replacement(numbers_of_sample(resampling, "bootstrap", sample), times);
      std::vector<double>& sum = sums[static_cast<size_t>(sample)];
      for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t k = 0; k < width; ++k) sum[k] += static_cast<double>(times[i]) * rows[i][k];
      }
    }
  });
  return sums;
}

double bootstrap_p_value(const std::vector<double>& baseline, const std::vector<double>& system, double difference) {
  if (baseline.empty() || baseline.size() != system.size()) {
    throw Error(fmt::format("{} samples against {}", system.size(), baseline.size()), "draw both together");
  }
  std::vector<double> differences(baseline.size());
  std::transform(system.begin(), system.end(), baseline.begin(), differences.begin(),
                 [](double a, double b) { return std::abs(a - b); });
  const auto samples = std::ssize(differences);
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / static_cast<double>(samples);
  return p_value(std::count_if(differences.begin(), differences.end(),
                               [&](double d) { return d - mean >= std::abs(difference) - kTie; }),
                 samples);
}

double randomization_p_value(const CorpusMetric& metric, const SentenceCounts& baseline, const SentenceCounts& system,
                             const Resampling& resampling) {
  require_samples(resampling);
  require_same_sentences(baseline.sentences(), system.sentences());
  return randomization(differing_rows(baseline, system), baseline.sum(), system.sum(), metric.score, resampling);
}

double randomization_p_value(const std::vector<std::vector<double>>& baseline,
                             const std::vector<std::vector<double>>& system, const SumScore& score,
                             const Resampling& resampling) {
  require_samples(resampling);
  require_same_sentences(baseline.size(), system.size());
  if (baseline.empty()) throw Error("two systems without items cannot be compared");
  const std::vector<double> of_baseline = sums_of(baseline), of_system = sums_of(system);
  std::vector<std::vector<double>> rows;
  for (size_t i = 0; i < baseline.size(); ++i) {
    if (baseline[i] == system[i]) continue;
    std::vector<double>& row = rows.emplace_back(system[i].size());
    std::transform(system[i].begin(), system[i].end(), baseline[i].begin(), row.begin(), std::minus());
  }
  const auto scored = [&](const std::vector<double>& sums) { return score(sums, baseline.size()); };
  return randomization(rows, of_baseline, of_system, scored, resampling);
}

}  // namespace plumb
