#include "plumb/ops/top_scores.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize) {
  if (k < 1 || first_id < 0 || first_id > logits.size(1))
    throw Error(fmt::format("the {} best of {} logits from {} on do not exist", k, logits.size(1), first_id));
  static constexpr Operation kTopScores("top scores", PLUMB_FUSED(top_scores), &reference::top_scores);
  return kTopScores(path_of(logits), logits, k, first_id, normalize);
}

}  // namespace plumb::ops
