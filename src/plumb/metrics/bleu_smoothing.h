// The precision of an n-gram order without a match: without smoothing, one such order makes BLEU 0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plumb/base/registry.h"

namespace plumb {

/// Sums over sentences for n = 1, 2, …: clipped matches, and n-grams of the hypotheses. Equally long.
struct BleuCounts {
  std::span<const int64_t> matches;
  std::span<const int64_t> totals;
};

struct BleuSmoothing {
  std::optional<double> default_value;  // of a method that takes a value
  /// Precisions in percent, of the orders before the first without n-grams (counting those that add-k adds).
  std::vector<double> (*precisions)(const BleuCounts& counts, double value);
};

/// `exp`, `floor`, `add-k`, `none`: methods 3, 1, 2 and 0 of Chen and Cherry 2014 (aclanthology.org/W14-3346).
const Registry<BleuSmoothing>& bleu_smoothings();

}  // namespace plumb
