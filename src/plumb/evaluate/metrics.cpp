#include "plumb/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "plumb/base/contains.h"
#include "plumb/base/parallel.h"
#include "plumb/base/utf8.h"
#include "plumb/evaluate/python_random.h"

namespace plumb {
namespace {

using Terms = std::vector<double>;

/// The index of the choice with the largest log-likelihood / divisor; the first of equal ones.
size_t best_choice(std::span<const Answer> answers, const std::function<double(size_t choice)>& divisor) {
  size_t best = 0;
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < answers.size(); ++i) {
    const double score = answers[i].log_likelihood / divisor(i);
    if (score > highest) {
      highest = score;
      best = i;
    }
  }
  return best;
}

Terms right(bool yes) { return {yes ? 1.0 : 0.0}; }

Terms right(const EvaluationItem& item, size_t choice) {
  return right(choice == item.gold || contains(item.also_right, choice));
}

/// acc: the most probable choice is right or, with a single choice, greedy decoding yields it.
Terms accuracy_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  if (answers.size() == 1) return right(answers[0].greedy);
  return right(item, best_choice(answers, [](size_t) { return 1.0; }));
}

/// acc_norm: the choice with the largest log-likelihood per character is right.
Terms character_accuracy_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  const auto characters = [&](size_t i) { return static_cast<double>(characters_in(item.choices[i])); };
  return right(item, best_choice(answers, characters));
}

/// acc_bytes: the same per byte.
Terms byte_accuracy_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  const auto bytes = [&](size_t i) { return static_cast<double>(item.choices[i].size()); };
  return right(item, best_choice(answers, bytes));
}

Terms likelihood_terms(const EvaluationItem&, std::span<const Answer> answers) { return {answers[0].log_likelihood}; }
Terms word_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  return {answers[0].log_likelihood, static_cast<double>(item.words)};
}
Terms byte_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  return {answers[0].log_likelihood, static_cast<double>(item.bytes)};
}

double perplexity_of_sum(std::span<const double> sums, size_t items) { return std::exp(-mean_of_sum(sums, items)); }
double weighted_perplexity(std::span<const double> sums, size_t) { return std::exp(-sums[0] / sums[1]); }
double bits_of_sums(std::span<const double> sums, size_t) { return -sums[0] / sums[1] / std::numbers::ln2; }

const bool kMetricsRegistered = [] {
  const std::string harness = "lm-evaluation-harness";
  auto& metrics = evaluation_metrics();
  metrics.add("acc", "share of items whose most probable choice, or greedy continuation, is the right one", harness,
              {accuracy_terms, mean_of_sum});
  metrics.add("acc_norm", "the same with log-likelihoods divided by the characters of the choices", harness,
              {character_accuracy_terms, mean_of_sum});
  metrics.add("acc_bytes", "the same with log-likelihoods divided by the bytes of the choices", harness,
              {byte_accuracy_terms, mean_of_sum});
  metrics.add("perplexity", "exp(−mean log-likelihood of an item)", harness,
              {likelihood_terms, perplexity_of_sum, StandardError::bootstrap, false});
  metrics.add("word_perplexity", "exp(−Σ log-likelihood / Σ words)", harness,
              {word_terms, weighted_perplexity, StandardError::none, false});
  metrics.add("byte_perplexity", "exp(−Σ log-likelihood / Σ bytes)", harness,
              {byte_terms, weighted_perplexity, StandardError::none, false});
  metrics.add("bits_per_byte", "−Σ log-likelihood / Σ bytes / ln 2", harness,
              {byte_terms, bits_of_sums, StandardError::none, false});
  return true;
}();

Terms sums_of(const MetricTerms& terms) {
  Terms sums(terms.front().size());
  for (const Terms& row : terms) std::transform(row.begin(), row.end(), sums.begin(), sums.begin(), std::plus());
  return sums;
}

/// The standard deviation with n − 1.
double sample_deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

double error_of_mean(const MetricTerms& terms) {
  std::vector<double> values;
  for (const Terms& row : terms) values.push_back(row[0]);
  return sample_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

/// The harness draws its samples in blocks of 1,000, each from a generator seeded with the block's number.
double bootstrap_error(const EvaluationMetric& metric, const MetricTerms& terms, int64_t samples) {
  const int64_t block = std::min<int64_t>(1000, samples);
  const int64_t blocks = samples / block;
  std::vector<double> scores(static_cast<size_t>(blocks * block));
  parallel_items(blocks, [&](int64_t number) {
    PythonRandom random(static_cast<uint64_t>(number));
    for (int64_t i = 0; i < block; ++i) {
      Terms sums(terms.front().size());
      for (const size_t item : random.choices(terms.size())) {
        for (size_t k = 0; k < sums.size(); ++k) sums[k] += terms[item][k];
      }
      scores[static_cast<size_t>(number * block + i)] = metric.score(sums, terms.size());
    }
  });
  return sample_deviation(scores);
}

std::optional<double> standard_error_of(const EvaluationMetric& metric, const MetricTerms& terms, int64_t samples) {
  if (terms.size() < 2) return {};
  if (metric.standard_error == StandardError::of_mean) return error_of_mean(terms);
  if (metric.standard_error == StandardError::bootstrap && samples > 1) return bootstrap_error(metric, terms, samples);
  return {};
}

std::optional<SampleInterval> interval_of(const EvaluationMetric& metric, const MetricTerms& terms,
                                          const Resampling& resampling) {
  if (terms.size() < 2 || resampling.samples == 0) return {};
  std::vector<double> scores;
  for (const Terms& sums : bootstrap_sums(terms, resampling)) scores.push_back(metric.score(sums, terms.size()));
  return interval_of_samples(std::move(scores));
}

}  // namespace

double mean_of_sum(std::span<const double> sums, size_t items) { return sums[0] / static_cast<double>(items); }

Registry<EvaluationMetric>& evaluation_metrics() {
  static Registry<EvaluationMetric> registry("evaluation metric", {"Evaluation metrics", "plumb evaluate",
                                                                   "What tasks are scored by; each task has its own."});
  return registry;
}

MetricResult measure(const std::string& name, const std::vector<EvaluationItem>& items,
                     const std::vector<std::vector<Answer>>& answers, const MetricOptions& options) {
  const EvaluationMetric& metric = evaluation_metrics().at(name).make;
  MetricTerms terms;
  for (size_t i = 0; i < items.size(); ++i) terms.push_back(metric.terms(items[i], answers[i]));
  if (terms.empty()) throw Error(name + " of no items");
  return {.name = name,
          .score = metric.score(sums_of(terms), terms.size()),
          .standard_error = standard_error_of(metric, terms, options.harness_bootstrap),
          .interval = interval_of(metric, terms, options.resampling),
          .higher_is_better = metric.higher_is_better};
}

std::optional<double> pooled_standard_error(const std::vector<std::optional<double>>& errors,
                                            const std::vector<size_t>& items) {
  double sum = 0;
  double total = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) return {};
    const auto n = static_cast<double>(items[i]);
    sum += (n - 1) * *errors[i] * *errors[i] * n;
    total += n;
  }
  const double freedom = total - static_cast<double>(errors.size());
  if (freedom <= 0) return {};
  return std::sqrt(sum / freedom / total);
}

}  // namespace plumb
