// The regularizers of recurrent language models: Merity et al. 2018, "Regularizing and optimizing LSTM language
// models", arXiv 1708.02182, and 2017, "Revisiting activation regularization for language RNNs", arXiv 1708.01009. The
// weights between hidden states are dropped by ops::dropout (DropConnect: Wan et al. 2013), with one mask for all
// positions and sequences of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/ragged.h"
#include "plumb/ops/dropout.h"

namespace plumb {

/// Locked, or variational, dropout (Gal & Ghahramani 2016, arXiv 1512.05287): x'_t = m∘x_t/(1 − p), m of independent
/// elements that are 1 with probability 1 − p, the same for all positions t of a sequence. x: (tokens, width) → the
/// same. The mask of a sequence depends on the key and on the row at which the sequence begins in the step's batch, not
/// on how that batch is split; the runs of the key are ignored.
Tensor locked_dropout(const Tensor& x, const Ragged& layout, double p, const ops::DropoutKey& key);

/// Embedding dropout (Gal & Ghahramani 2016; Merity et al. 2018, section 4.3): E'_w = m_w·E_w/(1 − p), m_w = 1 with
/// probability 1 − p, for each word w of the vocabulary, which is dropped wherever it occurs in the step's batch.
/// embedded: (tokens, width), the tokens' rows of E → those of E'. The key must have no runs.
Tensor embedding_dropout(const Tensor& embedded, const std::vector<int64_t>& tokens, int64_t vocabulary, double p,
                         const ops::DropoutKey& key);

/// Activation regularization (AR): the mean of h², over all positions and features; the loss becomes loss + α·AR. h:
/// (tokens, width), the outputs of the last layer after dropout. The mean follows the authors' code; the paper has
/// α·‖m∘h_t‖₂. A scalar, 0 without tokens.
Tensor activation_penalty(const Tensor& h);

/// Temporal activation regularization (TAR), or slowness: the mean of (h_t − h_{t−1})², over all features and all
/// positions that have one before them in their sequence; the loss becomes loss + β·TAR. h: (tokens, width), the
/// outputs of the last layer before dropout. The mean follows the authors' code; the paper has β·‖h_t − h_{t+1}‖₂. A
/// scalar, 0 if no sequence has two positions.
Tensor temporal_penalty(const Tensor& h, const Ragged& layout);

}  // namespace plumb
