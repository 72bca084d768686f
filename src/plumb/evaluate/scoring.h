// The likelihood of continuations under a language model: requests are read in batches, longest first, and common
// prefixes are read once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/evaluate/answer.h"
#include "plumb/evaluate/text_encoder.h"
#include "plumb/model/capabilities.h"

namespace plumb {

struct ScoringOptions {
  int64_t batch_tokens = 4096;        // tokens per batch; a request is never divided
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

/// Called with the answer to request `number` as soon as it is known, in no particular order.
using OnAnswer = std::function<void(size_t number, const Answer& answer)>;

/// Called between batches.
using OnBatch = std::function<void()>;

/// Answers requests. A context shared by consecutive requests, such as the choices of an item, is read once; so is the
/// common prefix of a batch's contexts, such as few-shot examples. Throws Error if a context or continuation is empty,
/// a request is longer than the model can read, a token is outside its vocabulary, or the model computes NaN.
void score_requests(Generates& model, const std::vector<TokenRequest>& requests, const ScoringOptions& options,
                    const OnAnswer& on_answer, const OnBatch& on_batch = {});

}  // namespace plumb
