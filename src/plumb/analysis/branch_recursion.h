// What the sizes of the matrices predict of branch_stream.h at initialization, in every residual scheme. Of the tokens
// of a sequence, the recursion keeps two numbers: the mean square m of an element and the mean cosine ρ between two
// tokens. Random matrices turn them into those of what a sub-layer adds (docs/findings/post-ln.md):
//   attention returns a mean of n tokens: m·(ρ + (1 − ρ)·Σa²), a the weights, for which normal scores are drawn; that
//   is m·(ρ + (1 − ρ)/n), the same for all tokens, if the scores are equal;
//   a feed-forward sub-layer acts on each token: m·E[φ(u)²]/E[u²] and E[φ(u)φ(v)]/E[φ(u)²], u and v normal with
//   correlation ρ;
// each times the gains of its matrices, columns·variance. The scheme's own code adds such branches, drawn at random,
// to a stream of random tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/branch_stream.h"

namespace plumb {

struct TokenMoments {
  double mean_square = 0;
  double similarity = 0;
};

/// The scores of a query, normal over the keys, and their correlation between the queries of two tokens.
struct AttentionScores {
  double variance = 0;
  double correlation = 0;
};

/// Of what attention over `tokens` tokens returns, before the matrices of values and outputs. If `causal`, a token sees
/// itself and those before it; the moments are means over the tokens.
TokenMoments attended(const TokenMoments& read, double tokens, bool causal, const AttentionScores& scores);

/// Of the inner features of a feed-forward sub-layer whose first matrix (and gate) multiply mean squares by `gain`.
/// Empty for a custom activation, whose formula is not known.
std::optional<TokenMoments> activated(const std::string& activation, const TokenMoments& read, double gain);

/// Predicts measure_branches of an undivided, newly initialized model. From the batch, it takes the moments of each
/// stack's input and the mean lengths of the sequences. Empty where the recursion does not hold: attention of another
/// kind than softmax, gated, or with values of other layers; other activations; recurrent models.
std::vector<BranchPoint> predict_branches(Model& model, const Batch& batch);

}  // namespace plumb
