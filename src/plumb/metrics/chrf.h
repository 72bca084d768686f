// Corpus chrF (Popović 2015, aclanthology.org/W15-3049) and chrF++ (Popović 2017, aclanthology.org/W17-4770), equal to
// sacreBLEU 2:
//   chrF = 100 · (1 + β²) · P · R / (β² · P + R)
// where P and R are the n-gram precision and recall, averaged over character orders 1 … 6 and, for chrF++, word orders
// 1 and 2. Orders for which the hypotheses or the references have no n-gram are excluded from the average. White space
// is ignored. With several references, the one with the best sentence score counts.
#pragma once

#include "plumb/metrics/corpus_metric.h"

namespace plumb {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  // 2: chrF++
  double beta = 2;     // recall has beta times the weight of precision
  bool lowercase = false;
  bool whitespace = false;  // n-grams of characters include white space
  /// Averages the F-scores of all orders instead, as chrF++.py, NLTK and Moses do; where a side has no n-gram, its
  /// precision or recall is 1e-16.
  bool epsilon_smoothing = false;
};

/// chrF as a metric over sentence counts, three for each order, character orders first: n-grams of the hypothesis, of
/// the reference, and common to both. Throws Error on options out of range.
CorpusMetric chrf_metric(const ChrfOptions& options = {});

}  // namespace plumb
