// Embedding dropout: Gal & Ghahramani 2016, arXiv 1512.05287; Merity et al. 2018, arXiv 1708.02182, section 4.3.
//   E'_w = m_w·E_w/(1 − p), m_w = 1 with probability 1 − p, for each word w of the vocabulary.
// A dropped word is dropped wherever it occurs in the step's batch.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/ops/dropout.h"

namespace plumb {

/// embedded: (tokens, width), the tokens' rows of E → those of E'. The key must have no runs.
Tensor embedding_dropout(const Tensor& embedded, const std::vector<int64_t>& tokens, int64_t vocabulary, double p,
                         const ops::DropoutKey& key);

}  // namespace plumb
