#include "plumb/ops/top_scores.h"

#include "plumb/ops/implementations.h"

namespace plumb::ops {

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize) {
  static constexpr Operation kTopScores("top scores", PLUMB_FUSED(top_scores), &reference::top_scores);
  return kTopScores(path_of(logits), logits, k, first_id, normalize);
}

}  // namespace plumb::ops
