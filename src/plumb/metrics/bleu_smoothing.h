// The precision of an n-gram order without a match: without smoothing, one such order makes BLEU 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plumb/base/registry.h"

namespace plumb {

/// Highest n-gram order of BLEU.
inline constexpr size_t kBleuOrder = 4;

/// Sums over the corpus for n = 1 … 4: clipped matches, and n-grams of the hypotheses.
struct BleuCounts {
  std::array<int64_t, kBleuOrder> matches{};
  std::array<int64_t, kBleuOrder> totals{};
};

struct BleuSmoothing {
  std::string signature;                                                   // as it appears in the score's signature
  std::array<double, kBleuOrder> (*precisions)(const BleuCounts& counts);  // in percent; 0 if there are no n-grams
};

/// `exp`, `floor`, `add-k`, `none`: methods 3, 1, 2 and 0 of Chen and Cherry 2014 (aclanthology.org/W14-3346).
const Registry<BleuSmoothing>& bleu_smoothings();

}  // namespace plumb
