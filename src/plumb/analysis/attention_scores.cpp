#include "plumb/analysis/attention_scores.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plumb {

void AttentionMeter::see(const LayerId& attention, const Tensor& scores) {
  const at::NoGradGuard no_graph;
  const Tensor wide = scores.detach().to(at::kDouble);
  const Tensor weights = at::softmax(wide, -1);
  const Tensor keys = (wide != -std::numeric_limits<double>::infinity()).sum(-1).to(at::kDouble);  // (heads, queries)
  const Tensor chooses = keys > 1;
  const Tensor relative = -at::xlogy(weights, weights).sum(-1) / keys.log();
  const Tensor entropy =
      at::where(chooses, relative, at::zeros_like(relative)).sum(1).to(at::kCPU).contiguous();  // (heads)
  const double largest = wide.max().item<double>();
  const auto heads = static_cast<size_t>(entropy.numel());
  const bool first = sums_.count(attention) == 0;
  Sums& sums = sums_[attention];
  sums.entropy.resize(heads);
  for (size_t h = 0; h < heads; ++h) sums.entropy[h] += entropy.data_ptr<double>()[h];
  sums.queries += chooses[0].sum().item<double>();
  if (first || !(largest <= sums.largest)) sums.largest = largest;  // NaN stays
}

std::map<LayerId, AttentionProfile> AttentionMeter::profiles() const {
  std::map<LayerId, AttentionProfile> all;
  for (const auto& [attention, sums] : sums_) {
    const double sum = std::accumulate(sums.entropy.begin(), sums.entropy.end(), 0.0);
    all[attention] = {sum / sums.queries / static_cast<double>(sums.entropy.size()),
                      *std::min_element(sums.entropy.begin(), sums.entropy.end()) / sums.queries, sums.largest};
  }
  return all;
}

}  // namespace plumb
