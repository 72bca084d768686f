// Choosing the next token from one row of logits: filters, then sampling.
//
// In the order used by `transformers`, each applied to what the previous ones leave:
//   repetition penalty θ   z ← z / θ where z > 0, else z·θ, for every token seen so far (CTRL, Keskar et al. 2019,
//                          arXiv 1909.05858)
//   temperature T          p ∝ exp(z / T); T = 0: the token with the largest z (greedy), regardless of what follows
//   top-k                  the k most probable tokens, and ties with the k-th (Fan et al. 2018, arXiv
//                          1805.04833)
//   top-p                  the smallest set of most probable tokens with a total probability of at least p
//                          (nucleus sampling, Holtzman et al. 2020, arXiv 1904.09751)
//   min-p                  tokens at least min-p times as probable as the most probable one (Nguyen et al. 2024, arXiv
//                          2407.01082)
// Among equally probable tokens, the one with the lower id comes first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plumb {

struct SamplingOptions {
  double temperature = 1;         // 0: greedy
  int64_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 1: all tokens
  double min_p = 0;               // 0: all tokens
  double repetition_penalty = 1;  // 1: none
  int64_t seed = 1;
};

/// Throws Error on invalid values.
void validate(const SamplingOptions& options);

/// A candidate for the next token.
struct NextToken {
  int32_t id = 0;
  double probability = 0;

  bool operator==(const NextToken&) const = default;
};

/// Draws tokens. The random number of each depends only on the seed, the index of the sample and the position, not on
/// earlier draws: samples do not depend on how they are batched, and a text resumed in the middle continues the same
/// way. Thread-safe.
class Sampler {
 public:
  /// Tokens in `forbidden` are never drawn; their probability goes to the others. Throws Error on invalid options.
  explicit Sampler(const SamplingOptions& options, std::vector<int32_t> forbidden = {});

  /// The candidates for the next token after all filters, in the order of ids; the probabilities sum to 1. logits:
  /// (vocabulary); `seen` are the tokens so far. Throws Error if no logit is finite, or if one is NaN or +∞.
  [[nodiscard]] std::vector<NextToken> distribution(std::span<const double> logits,
                                                    std::span<const int32_t> seen) const;

  /// The number of top logits that determine the draw: in greedy decoding with few forbidden tokens and no repetition
  /// penalty, forbidden + 2 (the best allowed token, and the next one to detect a tie). 0: all logits are needed.
  [[nodiscard]] int64_t deciding() const;

  /// The greedy choice from the top `deciding()` ids and their logits, best first, padded with id −1. nullopt if the
  /// whole row is needed: on a tie, since not every top-k search orders ties by id, or to report an invalid logit.
  [[nodiscard]] std::optional<int32_t> best_of(std::span<const int32_t> ids, std::span<const double> logits) const;

  /// The next token of sample `sample` at `position`.
  [[nodiscard]] int32_t draw(std::span<const double> logits, std::span<const int32_t> seen, int64_t sample,
                             int64_t position) const;

 private:
  SamplingOptions options_;
  std::vector<int32_t> forbidden_;
};

}  // namespace plumb
