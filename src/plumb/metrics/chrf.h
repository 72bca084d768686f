// Corpus chrF (Popović 2015, aclanthology.org/W15-3049) and chrF++ (Popović 2017, aclanthology.org/W17-4770), equal to
// sacreBLEU 2:
//   chrF = 100 · (1 + β²) · P · R / (β² · P + R)
// with P and R the n-gram precision and recall, averaged over character orders 1 … 6 and, for chrF++, word orders 1
// and 2. Orders that the hypotheses or the references have no n-gram of do not enter the average. White space is no
// character. Of several references the one with the best sentence score counts.
#pragma once

#include <string>
#include <vector>

namespace plumb {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  // 2: chrF++
  double beta = 2;     // recall counts beta times as much as precision
  bool lowercase = false;
};

struct ChrfScore {
  double score = 0;  // 0 … 100
  std::string name;  // "chrF2", "chrF2++"
  std::string signature;
};

/// `references`: one vector per reference file, each as long as `hypotheses`. Text is detokenized UTF-8.
/// Throws Error for unequal lengths, no sentences, no references, or options out of range.
ChrfScore corpus_chrf(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const ChrfOptions& options = {});

}  // namespace plumb
