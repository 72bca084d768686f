#include "plumb/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"
#include "plumb/metrics/unicode.h"

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

Terms right(const EvaluationItem& item, size_t choice) { return right(choice == item.gold); }

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

/// exact_match: the model wrote the right answer, white space around it aside.
Terms match_terms(const EvaluationItem& item, std::span<const Answer> answers) {
  if (!answers[0].text) throw Error("exact_match of an answer that the model did not write");
  return right(without_outer_space(*answers[0].text) == without_outer_space(item.choices[0]));
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
  metrics.add("exact_match", "share of items whose written answer, without white space around it, is the right one",
              harness, {match_terms, mean_of_sum});
  metrics.add("perplexity", "exp(−mean log-likelihood of an item)", harness,
              {likelihood_terms, perplexity_of_sum, false, false});
  metrics.add("word_perplexity", "exp(−Σ log-likelihood / Σ words)", harness,
              {word_terms, weighted_perplexity, false, false});
  metrics.add("byte_perplexity", "exp(−Σ log-likelihood / Σ bytes)", harness,
              {byte_terms, weighted_perplexity, false, false});
  metrics.add("bits_per_byte", "−Σ log-likelihood / Σ bytes / ln 2", harness, {byte_terms, bits_of_sums, false, false});
  return true;
}();

Terms sums_of(const MetricTerms& terms) {
  Terms sums(terms.front().size());
  for (const Terms& row : terms) std::transform(row.begin(), row.end(), sums.begin(), sums.begin(), std::plus());
  return sums;
}

/// The standard error of the mean of the terms.
double error_of_mean(const MetricTerms& terms) {
  const auto n = static_cast<double>(terms.size());
  double sum = 0, squares = 0;
  for (const Terms& row : terms) sum += row[0];
  for (const Terms& row : terms) squares += (row[0] - sum / n) * (row[0] - sum / n);
  return std::sqrt(squares / (n - 1)) / std::sqrt(n);
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
                     const std::vector<std::vector<Answer>>& answers, const Resampling& resampling) {
  const EvaluationMetric& metric = evaluation_metrics().at(name).make;
  MetricTerms terms;
  for (size_t i = 0; i < items.size(); ++i) terms.push_back(metric.terms(items[i], answers[i]));
  if (terms.empty()) throw Error(name + " of no items");
  return {.name = name,
          .score = metric.score(sums_of(terms), terms.size()),
          .standard_error = metric.is_mean && terms.size() > 1 ? std::optional(error_of_mean(terms)) : std::nullopt,
          .interval = interval_of(metric, terms, resampling),
          .higher_is_better = metric.higher_is_better};
}

}  // namespace plumb
