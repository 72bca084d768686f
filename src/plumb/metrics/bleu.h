// Corpus BLEU (Papineni et al. 2002, aclanthology.org/P02-1040), equal to sacreBLEU 2 (Post 2018, arXiv 1804.08771):
//   BLEU = BP · exp(1/N · Σₙ log pₙ),  n = 1 … N, N = 4
//   pₙ = Σ clipped matches of n-grams / Σ n-grams of the hypotheses,  BP = min(1, exp(1 − reference_length /
//   system_length))
// Matches are clipped to the largest count in any one reference; a sentence's reference length is the one closest to
// that of the hypothesis, and the shorter of two equally close ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plumb/metrics/corpus_metric.h"
#include "plumb/metrics/resampling.h"

namespace plumb {

struct BleuOptions {
  std::string tokenizer = "13a";  // a name in bleu_tokenizers()
  bool lowercase = false;
  std::string smoothing = "exp";          // a name in bleu_smoothings()
  std::optional<double> smoothing_value;  // of `floor` and `add-k`; the default is that of the smoothing
  int order = 4;                          // N, the highest order of n-grams
  bool effective_order = false;           // N is at most the highest order in the hypotheses; for sentence scores
};

struct BleuScore {
  double score = 0;                // 0 … 100
  std::vector<double> precisions;  // of orders 1 … N, in percent, smoothed; all 0 if no word matches
  double brevity_penalty = 1;
  int64_t system_length = 0;  // words of the hypotheses
  int64_t reference_length = 0;
  std::string signature;
};

/// `references`: one vector per reference file, each of the same length as `hypotheses`. Text is detokenized UTF-8.
/// Throws Error on unequal lengths, no sentences, no references, or what `bleu_metric` rejects.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options = {});

/// BLEU of a corpus, and its 95% bootstrap interval.
struct BleuWithInterval {
  double score = 0;         // of the corpus itself, 0 … 100
  SampleInterval interval;  // of resampled corpora; its mean is near the score, not equal to it
  std::string signature;    // with the number of samples and the seed
};

/// BLEU with its interval: each sentence is counted once, and the resampled corpora are scored from the counts. With
/// 1,000 samples of 2,000 sentences this takes little longer than BLEU alone. The interval reflects only the choice of
/// sentences for a given model, not the variation of BLEU between training runs. Throws Error on fewer than two
/// sentences, and as `corpus_bleu` and `bootstrap_scores` do.
BleuWithInterval bleu_with_interval(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::vector<std::string>>& references,
                                    const BleuOptions& options = {}, const Resampling& resampling = {});

/// BLEU as a metric over sentence counts: words of the hypothesis, length of the reference, N numbers of matches, N
/// numbers of n-grams. Throws Error on an unknown tokenizer or smoothing, an order below 1, and a smoothing value that
/// is negative, not finite, or not taken by the smoothing.
CorpusMetric bleu_metric(const BleuOptions& options = {});

/// The score of summed counts and its parts, without the signature. Throws Error if the counts are of another order.
BleuScore bleu_of_counts(std::span<const int64_t> counts, const BleuOptions& options = {});

}  // namespace plumb
