#include "plumb/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"
#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/metrics/ngrams.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

// A sentence as numbered words.
using Words = std::u32string;

int64_t closest_length(const Words& hypothesis, const std::vector<Words>& references) {
  const auto length = static_cast<int64_t>(hypothesis.size());
  std::pair<int64_t, int64_t> best{INT64_MAX, 0};  // distance, then length
  for (const Words& reference : references) {
    const auto candidate = static_cast<int64_t>(reference.size());
    best = std::min(best, {std::abs(candidate - length), candidate});
  }
  return best.second;
}

// Fills a row of counts that is initially all zeros.
void count_bleu(const Words& hypothesis, const std::vector<Words>& references, std::span<int64_t> counts) {
  counts[0] = static_cast<int64_t>(hypothesis.size());
  counts[1] = closest_length(hypothesis, references);
  const size_t highest = (counts.size() - 2) / 2;
  for (size_t n = 0; n < highest; ++n) {
    const int order = static_cast<int>(n) + 1;
    Ngrams allowed;
    for (const Words& reference : references) {
      Ngrams found = ngrams(reference, order);
      allowed = allowed.empty() ? std::move(found) : merge_larger_counts(allowed, found);
    }
    const Ngrams proposed = ngrams(hypothesis, order);
    counts[2 + n] = count_common(proposed, allowed);
    counts[2 + highest + n] = static_cast<int64_t>(proposed.size());
  }
}

double brevity_penalty(int64_t system_length, int64_t reference_length) {
  if (system_length >= reference_length) return 1.0;
  if (system_length == 0) return 0.0;
  return std::exp(1.0 - static_cast<double>(reference_length) / static_cast<double>(system_length));
}

void require_valid_bleu(const BleuOptions& options) {
  if (options.order < 1) throw Error(fmt::format("the order of BLEU is {}", options.order), "it must be at least 1");
  if (!options.smoothing_value) return;
  if (!bleu_smoothings().at(options.smoothing).make.default_value) {
    throw Error(fmt::format("the smoothing '{}' takes no value", options.smoothing), "'floor' and 'add-k' take one");
  }
  if (!(*options.smoothing_value >= 0) || std::isinf(*options.smoothing_value)) {
    throw Error(fmt::format("the smoothing value is {}", *options.smoothing_value), "it must be 0 or above");
  }
}

// Two decimals, as in sacreBLEU, or as many as needed.
std::string short_number(double value) {
  std::string two = fmt::format("{:.2f}", value);
  return parse_number<double>(two) == value ? two : fmt::format("{}", value);
}

std::string smoothing_signature(const BleuOptions& options) {
  const BleuSmoothing& smoothing = bleu_smoothings().at(options.smoothing).make;
  if (!smoothing.default_value) return options.smoothing;
  return fmt::format("{}[{}]", options.smoothing,
                     short_number(options.smoothing_value.value_or(*smoothing.default_value)));
}

// The order is included only if it is not 4, because sacreBLEU's signature does not have it.
std::string bleu_settings(const BleuOptions& options) {
  const std::string order = options.order == BleuOptions().order ? "" : fmt::format("|order:{}", options.order);
  return fmt::format("case:{}|eff:{}|tok:{}|smooth:{}{}", options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenizer, smoothing_signature(options), order);
}

}  // namespace

BleuScore bleu_of_counts(std::span<const int64_t> counts, const BleuOptions& options) {
  const auto order = static_cast<size_t>(options.order);
  if (counts.size() != 2 + 2 * order) {
    throw Error(fmt::format("{} counts for BLEU of order {}", counts.size(), options.order),
                "count and score with the same options");
  }
  BleuScore result;
  result.precisions.resize(order);
  result.system_length = counts[0];
  result.reference_length = counts[1];
  result.brevity_penalty = brevity_penalty(result.system_length, result.reference_length);
  const BleuCounts ngram_counts{.matches = counts.subspan(2, order), .totals = counts.subspan(2 + order, order)};
  // Without any match, smoothing does not apply (a match of any order implies one of order 1).
  if (ngram_counts.matches[0] == 0) return result;
  const BleuSmoothing& smoothing = bleu_smoothings().at(options.smoothing).make;
  const std::vector<double> precisions =
      smoothing.precisions(ngram_counts, options.smoothing_value.value_or(smoothing.default_value.value_or(0)));
  std::copy(precisions.begin(), precisions.end(), result.precisions.begin());
  const size_t highest = options.effective_order ? precisions.size() : order;
  double log_sum = 0;
  for (size_t n = 0; n < highest; ++n) log_sum += std::log(result.precisions[n]);
  result.score = result.brevity_penalty * std::exp(log_sum / static_cast<double>(highest));
  return result;
}

CorpusMetric bleu_metric(const BleuOptions& options) {
  require_valid_bleu(options);
  const BleuTokenizer tokenize = bleu_tokenizers().at(options.tokenizer).make;
  const bool lowercase = options.lowercase;
  const auto count = [tokenize, lowercase](std::string_view hypothesis, std::span<const std::string_view> references,
                                           std::span<int64_t> counts) {
    WordNumbers numbers;
    const auto words = [&](std::string_view line) {
      return numbers(lowercase ? tokenize(to_lower(line)) : tokenize(line));
    };
    std::vector<Words> sentence_references;
    for (const std::string_view reference : references) sentence_references.push_back(words(reference));
    count_bleu(words(hypothesis), sentence_references, counts);
  };
  return {.name = "BLEU",
          .settings = bleu_settings(options),
          .width = 2 + 2 * static_cast<size_t>(options.order),
          .count = count,
          .score = [options](std::span<const int64_t> counts) { return bleu_of_counts(counts, options).score; }};
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  const CorpusMetric metric = bleu_metric(options);
  BleuScore result = bleu_of_counts(count_sentences(metric, hypotheses, references).sum(), options);
  result.signature = metric_signature(metric, references.size());
  return result;
}

BleuWithInterval bleu_with_interval(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::vector<std::string>>& references, const BleuOptions& options,
                                    const Resampling& resampling) {
  const CorpusMetric metric = bleu_metric(options);
  const SentenceCounts counts = count_sentences(metric, hypotheses, references);
  return {.score = metric.score(counts.sum()),
          .interval = interval_of_samples(bootstrap_scores(metric, {counts}, resampling).front()),
          .signature = metric_signature(metric, references.size(),
                                        fmt::format("bs:{}|seed:{}", resampling.samples, resampling.seed))};
}

}  // namespace plumb
