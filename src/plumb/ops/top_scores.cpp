#include "plumb/ops/top_scores.h"

#include "plumb/ops/fused/fused.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize) {
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(logits)) return fused::top_scores(logits, k, first_id, normalize);
  }
  return reference::top_scores(logits, k, first_id, normalize);
}

}  // namespace plumb::ops
