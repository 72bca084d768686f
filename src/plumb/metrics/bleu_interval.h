// BLEU with its uncertainty due to the choice of sentences, for reports.
#pragma once

#include <string>
#include <vector>

#include "plumb/metrics/bleu.h"
#include "plumb/metrics/resampling.h"

namespace plumb {

/// BLEU of a corpus, and its 95% bootstrap interval.
struct BleuWithInterval {
  double score = 0;         // of the corpus itself, 0 … 100
  SampleInterval interval;  // of resampled corpora; its mean is near the score, not equal to it
  std::string signature;    // with the number of samples and the seed
};

/// BLEU with its interval: each sentence is counted once, and the resampled corpora are scored from the counts. With
/// 1,000 samples of 2,000 sentences this takes little longer than BLEU alone. The interval reflects only the choice of
/// sentences for a given model, not the variation of BLEU between training runs.
/// `references`: one vector per reference file, each of the same length as `hypotheses`. Throws Error on fewer than two
/// sentences, and as `corpus_bleu` and `bootstrap_scores` do.
BleuWithInterval bleu_with_interval(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::vector<std::string>>& references,
                                    const BleuOptions& options = {}, const Resampling& resampling = {});

}  // namespace plumb
