// Choosing the next token from one row of logits: filters, then a draw.
//
// In the order that `transformers` applies them, each on what those before it leave:
//   repetition penalty θ   z ← z / θ where z > 0, else z·θ, for every token seen so far (CTRL, Keskar et al. 2019,
//   arXiv
//                          1909.05858)
//   temperature T          p ∝ exp(z / T); T = 0: the token of the largest z (greedy), whatever follows
//   top-k                  the k most probable tokens, and those as probable as the k-th (Fan et al. 2018, arXiv
//                          1805.04833)
//   top-p                  the fewest most probable tokens whose probabilities add up to p or more (nucleus sampling,
//                          Holtzman et al. 2020, arXiv 1904.09751)
//   min-p                  tokens at least min-p times as probable as the most probable one (Nguyen et al. 2024, arXiv
//                          2407.01082)
// Of equally probable tokens that of the lower id comes first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

struct SamplingOptions {
  double temperature = 1;         // 0: greedy
  int64_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 1: all tokens
  double min_p = 0;               // 0: all tokens
  double repetition_penalty = 1;  // 1: none
  int64_t seed = 1;

  bool operator==(const SamplingOptions&) const = default;
};

void describe(Fields& field, SamplingOptions& options);

/// Throws Error on values that make no distribution.
void validate(const SamplingOptions& options);

/// A token that may come next.
struct NextToken {
  int32_t id = 0;
  double probability = 0;

  bool operator==(const NextToken&) const = default;
};

/// Draws tokens. Which one is a function of the seed, the number of the sample and the position alone, never of draws
/// before it: so samples do not depend on how they are batched, and a text that is continued from its middle continues
/// in the same way. Safe to use from several threads.
class Sampler {
 public:
  /// Tokens in `forbidden` never come out; others take their share. Throws Error on impossible options.
  explicit Sampler(const SamplingOptions& options, std::vector<int32_t> forbidden = {});

  /// What may come next after all filters, in the order of ids; the probabilities sum to 1. logits: (vocabulary);
  /// `seen` are the tokens so far. Throws Error if no logit is finite, or one is NaN or +∞.
  [[nodiscard]] std::vector<NextToken> distribution(std::span<const double> logits,
                                                    std::span<const int32_t> seen) const;

  /// The next token of sample `sample` at `position`.
  [[nodiscard]] int32_t draw(std::span<const double> logits, std::span<const int32_t> seen, int64_t sample,
                             int64_t position) const;

 private:
  SamplingOptions options_;
  std::vector<int32_t> forbidden_;
};

}  // namespace plumb
