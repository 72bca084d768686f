#include <cmath>
#include <limits>

#include "plumb/ops/reference/reference.h"

namespace plumb::ops::reference {

TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize) {
  const auto listed = [](const Tensor& x) {
    const Tensor here = x.to(at::kCPU, at::kDouble).contiguous();
    return std::vector<double>(here.data_ptr<double>(), here.data_ptr<double>() + here.numel());
  };
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  TopScores top;
  const Tensor wanted = logits.detach().narrow(1, first_id, logits.size(1) - first_id);
  top.k = std::min(k, wanted.size(1));
  const auto [values, ids] = wanted.masked_fill(wanted.isnan(), kNone).topk(top.k, 1);
  top.scores = listed(values);
  for (const double id : listed(ids + first_id)) top.ids.push_back(static_cast<int32_t>(id));
  for (size_t i = 0; i < top.scores.size(); ++i) {
    if (top.scores[i] == kNone) top.ids[i] = -1;
  }
  if (normalize) top.log_partition = listed(at::logsumexp(logits.detach(), {1}));
  return top;
}

}  // namespace plumb::ops::reference
