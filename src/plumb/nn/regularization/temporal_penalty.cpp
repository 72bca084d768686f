#include "plumb/nn/regularization/temporal_penalty.h"

#include <vector>

#include "plumb/ops/index.h"

namespace plumb {

Tensor temporal_penalty(const Tensor& h, const Ragged& layout) {
  std::vector<int64_t> earlier, later;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t t = layout.begin(s) + 1; t < layout.begin(s + 1); ++t) {
      earlier.push_back(t - 1);
      later.push_back(t);
    }
  }
  if (later.empty()) return at::zeros({}, h.options());
  const Tensor change =
      h.index_select(0, ops::index_beside(h, later)) - h.index_select(0, ops::index_beside(h, earlier));
  return (change * change).mean();
}

}  // namespace plumb
