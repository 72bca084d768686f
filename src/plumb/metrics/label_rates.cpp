#include "plumb/metrics/label_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kPresent = 0.5;

/// Terms that are summed over prompts: Σ p, number of samples, largest p, whether it is at least 0.5, and 1.
enum Term { sum_of_samples, sample_count, largest_sample, at_least_once, prompt_count, term_count };

std::vector<double> terms_of(const std::vector<double>& samples) {
  const double largest = *std::max_element(samples.begin(), samples.end());
  std::vector<double> terms(term_count);
  terms[sum_of_samples] = std::accumulate(samples.begin(), samples.end(), 0.0);
  terms[sample_count] = static_cast<double>(samples.size());
  terms[largest_sample] = largest;
  terms[at_least_once] = largest >= kPresent ? 1 : 0;
  terms[prompt_count] = 1;
  return terms;
}

LabelRate rate_of(Term numerator, Term denominator, const std::vector<double>& sums,
                  const std::vector<std::vector<double>>& resampled) {
  LabelRate rate{sums[numerator] / sums[denominator]};
  if (resampled.empty()) return rate;
  std::vector<double> values;
  for (const std::vector<double>& each : resampled) values.push_back(each[numerator] / each[denominator]);
  rate.interval = interval_of_samples(std::move(values));
  return rate;
}

}  // namespace

LabelRates label_rates(const std::vector<std::vector<double>>& probabilities, const Resampling& resampling) {
  if (probabilities.empty()) throw Error("there are no prompts");
  std::vector<std::vector<double>> rows;
  std::vector<double> sums(term_count);
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i].empty()) throw Error(fmt::format("prompt {} has no samples", i + 1));
    rows.push_back(terms_of(probabilities[i]));
    std::transform(sums.begin(), sums.end(), rows.back().begin(), sums.begin(), std::plus());
  }
  const auto resampled = rows.size() > 1 ? bootstrap_sums(rows, resampling) : std::vector<std::vector<double>>{};
  return {rate_of(sum_of_samples, sample_count, sums, resampled),
          rate_of(largest_sample, prompt_count, sums, resampled),
          rate_of(at_least_once, prompt_count, sums, resampled)};
}

}  // namespace plumb
