// The loss of a language model on texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/evaluate/scoring.h"

namespace plumb {

/// Σ −log p(token), in nats, and the number of tokens.
struct TextLoss {
  double sum = 0;
  int64_t tokens = 0;
};

/// Over all tokens of the texts, each read in windows of at most `longest` tokens, as benchmarks of whole texts are.
/// Throws Error if a text has no token, and as score_requests does.
TextLoss text_loss(Generates& model, const TextEncoder& encoder, const std::vector<std::string>& texts, int64_t longest,
                   const ScoringOptions& options = {});

}  // namespace plumb
