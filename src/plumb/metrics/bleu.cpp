#include "plumb/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "plumb/metrics/bleu_smoothing.h"
#include "plumb/metrics/bleu_tokenizer.h"
#include "plumb/metrics/corpus.h"
#include "plumb/metrics/ngrams.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

// A sentence as numbered words.
using Words = std::u32string;

void add_matches(BleuCounts& counts, const Words& hypothesis, const std::vector<Words>& references) {
  for (size_t n = 0; n < kBleuOrder; ++n) {
    const int order = static_cast<int>(n) + 1;
    Ngrams allowed;
    for (const Words& reference : references) {
      Ngrams found = ngrams(reference, order);
      allowed = allowed.empty() ? std::move(found) : merge_larger_counts(allowed, found);
    }
    const Ngrams proposed = ngrams(hypothesis, order);
    counts.matches[n] += count_common(proposed, allowed);
    counts.totals[n] += static_cast<int64_t>(proposed.size());
  }
}

int64_t closest_length(const Words& hypothesis, const std::vector<Words>& references) {
  const auto length = static_cast<int64_t>(hypothesis.size());
  std::pair<int64_t, int64_t> best{INT64_MAX, 0};  // distance, then length
  for (const Words& reference : references) {
    const auto candidate = static_cast<int64_t>(reference.size());
    best = std::min(best, {std::abs(candidate - length), candidate});
  }
  return best.second;
}

double brevity_penalty(int64_t system_length, int64_t reference_length) {
  if (system_length >= reference_length) return 1.0;
  if (system_length == 0) return 0.0;
  return std::exp(1.0 - static_cast<double>(reference_length) / static_cast<double>(system_length));
}

}  // namespace

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  require_parallel(hypotheses, references);
  const BleuTokenizer tokenize = bleu_tokenizers().at(options.tokenizer).make;
  const BleuSmoothing& smoothing = bleu_smoothings().at(options.smoothing).make;
  WordNumbers numbers;
  const auto words = [&](const std::string& line) {
    return numbers(tokenize(options.lowercase ? to_lower(line) : line));
  };

  BleuScore result;
  BleuCounts counts;
  std::vector<Words> sentence_references(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Words hypothesis = words(hypotheses[i]);
    for (size_t r = 0; r < references.size(); ++r) sentence_references[r] = words(references[r][i]);
    add_matches(counts, hypothesis, sentence_references);
    result.system_length += static_cast<int64_t>(hypothesis.size());
    result.reference_length += closest_length(hypothesis, sentence_references);
  }

  result.brevity_penalty = brevity_penalty(result.system_length, result.reference_length);
  // Smoothing fills gaps between matches; it does not help a text without any match (a match of any order implies one
  // of order 1).
  if (counts.matches[0] > 0) {
    result.precisions = smoothing.precisions(counts);
    double log_sum = 0;
    for (const double precision : result.precisions) log_sum += std::log(precision);
    result.score = result.brevity_penalty * std::exp(log_sum / static_cast<double>(kBleuOrder));
  }
  result.signature = metric_signature(references.size(), options.lowercase,
                                      fmt::format("eff:no|tok:{}|smooth:{}", options.tokenizer, smoothing.signature));
  return result;
}

}  // namespace plumb
