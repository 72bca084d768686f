#include <limits>

#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize) {
  const auto listed = [](const Tensor& x) {
    const Tensor here = x.to(at::kCPU, at::kDouble).contiguous();
    return std::vector<double>(here.data_ptr<double>(), here.data_ptr<double>() + here.numel());
  };
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  TopScores top;
  Tensor wanted = logits.detach().narrow(1, first_id, logits.size(1) - first_id);
  top.k = std::min(k, wanted.size(1));
  // In a row with NaN, only the first NaN remains.
  const Tensor nan = wanted.isnan();
  const Tensor first = nan.logical_and(nan.cumsum(1) == 1);
  wanted = wanted.masked_fill(nan.any(1, /*keepdim=*/true).logical_and(first.logical_not()), kNone);
  const auto [values, ids] = wanted.topk(top.k, 1);  // topk ranks NaN above all numbers
  top.scores = listed(values);
  for (const double id : listed(ids + first_id)) top.ids.push_back(static_cast<int32_t>(id));
  for (size_t i = 0; i < top.scores.size(); ++i) {
    if (top.scores[i] == kNone) top.ids[i] = -1;
  }
  if (normalize) top.log_partition = listed(at::logsumexp(logits.detach(), {1}));
  return top;
}

}  // namespace plumb::ops::reference
