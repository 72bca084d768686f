#include "plumb/evaluate/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "plumb/base/utf8.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

using Terms = std::vector<double>;

using Divisor = std::function<double(const EvaluationItem& item, size_t choice)>;

/// The index of the choice with the largest log-likelihood / divisor, the first of equal ones; and whether there are
/// equal ones.
std::pair<size_t, bool> best_choice(const EvaluationItem& item, std::span<const Answer> answers,
                                    const Divisor& divisor) {
  std::pair<size_t, bool> best;
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < answers.size(); ++i) {
    const double score = answers[i].log_likelihood / divisor(item, i);
    if (score > highest) {
      highest = score;
      best = {i, false};
    } else if (i > 0 && score == highest) {
      best.second = true;
    }
  }
  return best;
}

Terms right(bool yes) { return {yes ? 1.0 : 0.0}; }

double undivided(const EvaluationItem&, size_t) { return 1; }
double characters_of_choice(const EvaluationItem& item, size_t choice) {
  return static_cast<double>(characters_in(item.choices[choice]));
}
double bytes_of_choice(const EvaluationItem& item, size_t choice) {
  return static_cast<double>(item.choices[choice].size());
}

/// acc and its kind: the best choice is right or, with a single one, greedy decoding yields it.
EvaluationMetric accuracy_by(const Divisor& divisor) {
  const auto terms = [divisor](const EvaluationItem& item, std::span<const Answer> answers) {
    if (answers.size() == 1) return right(answers[0].greedy);
    return right(best_choice(item, answers, divisor).first == item.gold);
  };
  return {.terms = terms, .score = mean_of_sum, .divisor = divisor};
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
              accuracy_by(undivided));
  metrics.add("acc_norm", "the same with log-likelihoods divided by the characters of the choices", harness,
              accuracy_by(characters_of_choice));
  metrics.add("acc_bytes", "the same with log-likelihoods divided by the bytes of the choices", harness,
              accuracy_by(bytes_of_choice));
  metrics.add("exact_match", "share of items whose written answer, without white space around it, is the right one",
              harness, {match_terms, mean_of_sum});
  metrics.add("perplexity", "exp(−mean log-likelihood of an item)", harness,
              {likelihood_terms, perplexity_of_sum, false, false});
  metrics.add("word_perplexity", "exp(−Σ log-likelihood / Σ words)", harness,
              {word_terms, weighted_perplexity, false, false, 2});
  metrics.add("byte_perplexity", "exp(−Σ log-likelihood / Σ bytes)", harness,
              {byte_terms, weighted_perplexity, false, false, 2});
  metrics.add("bits_per_byte", "−Σ log-likelihood / Σ bytes / ln 2", harness,
              {byte_terms, bits_of_sums, false, false, 2});
  return true;
}();

/// The standard error of the mean of the terms.
double error_of_mean(const MetricTerms& terms) {
  const auto n = static_cast<double>(terms.size());
  double sum = 0, squares = 0;
  for (const Terms& row : terms) sum += row[0];
  for (const Terms& row : terms) squares += (row[0] - sum / n) * (row[0] - sum / n);
  return std::sqrt(squares / (n - 1)) / std::sqrt(n);
}

}  // namespace

std::string shown_score(double score) {
  const std::string text = std::abs(score) < 1e5 ? fmt::format("{:.4f}", score) : fmt::format("{:.5g}", score);
  return text.starts_with('-') ? "−" + text.substr(1) : text;
}

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
  std::optional<int64_t> ties;
  for (size_t i = 0; i < items.size(); ++i) {
    terms.push_back(metric.terms(items[i], answers[i]));
    if (!metric.divisor || answers[i].size() == 1) continue;
    ties = ties.value_or(0) + (best_choice(items[i], answers[i], metric.divisor).second ? 1 : 0);
  }
  if (terms.empty()) throw Error(name + " of no items");
  std::vector<double> samples;
  if (terms.size() > 1 && resampling.samples > 0) {
    for (const Terms& sums : bootstrap_sums(terms, resampling)) samples.push_back(metric.score(sums, terms.size()));
  }
  return {.name = name,
          .score = metric.score(sums_of(terms), terms.size()),
          .standard_error = metric.is_mean && terms.size() > 1 ? std::optional(error_of_mean(terms)) : std::nullopt,
          .interval = samples.empty() ? std::nullopt : std::optional(interval_of_samples(std::move(samples))),
          .higher_is_better = metric.higher_is_better,
          .ties = ties};
}

}  // namespace plumb
