// Corpus BLEU (Papineni et al. 2002, aclanthology.org/P02-1040), equal to sacreBLEU 2 (Post 2018, arXiv 1804.08771):
//   BLEU = BP · exp(¼ Σₙ log pₙ),  n = 1 … 4
//   pₙ = Σ clipped matches of n-grams / Σ n-grams of the hypotheses,  BP = min(1, exp(1 − reference_length /
//   system_length))
// Matches are clipped to the largest count in any one reference; a sentence's reference length is the one closest to
// that of the hypothesis, and the shorter of two equally close ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

struct BleuOptions {
  std::string tokenizer = "13a";  // a name in bleu_tokenizers()
  bool lowercase = false;
  std::string smoothing = "exp";  // a name in bleu_smoothings()
};

struct BleuScore {
  double score = 0;                    // 0 … 100
  std::array<double, 4> precisions{};  // in percent, smoothed; all 0 if no word matches
  double brevity_penalty = 1;
  int64_t system_length = 0;  // words of the hypotheses
  int64_t reference_length = 0;
  std::string signature;
};

/// `references`: one vector per reference file, each of the same length as `hypotheses`. Text is detokenized UTF-8.
/// Throws Error on unequal lengths, no sentences, no references, or an unknown tokenizer or smoothing.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options = {});

}  // namespace plumb
