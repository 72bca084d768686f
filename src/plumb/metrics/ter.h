// Translation edit rate (Snover et al. 2006, aclanthology.org/2006.amta-papers.25), equal to sacreBLEU 2, which follows
// the authors' program tercom:
//   TER = 100 · Σ edits / Σ mean length of the references
// where edits are insertions, deletions and substitutions of words, and shifts of a block of words; with several
// references, those to the nearest one. Lower is better, and it may exceed 100.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plumb/metrics/corpus_metric.h"

namespace plumb {

struct TerOptions {
  bool normalize = false;  // separates Western punctuation, and replaces XML's entities; references are normalized
                           // twice, as in sacreBLEU, so that "Anna's." is not equal to itself
  bool remove_punctuation = false;  // . , ? : ; ! " ( )
  bool asian = false;               // with `normalize`, separates Chinese and Japanese ideographs and punctuation; with
                                    // `remove_punctuation`, removes that punctuation too
  bool case_sensitive = false;
};

struct TerScore {
  double score = 0;  // 0 if there is neither an edit nor a reference, 100 if only the references are empty
  int64_t edits = 0;
  double reference_length = 0;  // words, averaged over the references of each sentence
  std::string signature;
};

/// `references`: one vector per reference file, each of the same length as `hypotheses`. Text is detokenized UTF-8.
/// Throws Error on unequal lengths, no sentences, or no references.
TerScore corpus_ter(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
                    const TerOptions& options = {});

/// TER as a metric over sentence counts: edits times the number of references, and the references' total length, so
/// that both are integers.
CorpusMetric ter_metric(const TerOptions& options = {});

/// The score of summed counts and its parts, without the signature.
TerScore ter_of_counts(std::span<const int64_t> counts, size_t reference_count);

}  // namespace plumb
