// Deterministic parameter-free projection, DPFP-ν, Schlag et al. 2021, arXiv 2102.11174, section 5.3: products of
// rectified features with rotated copies of themselves.
#pragma once

#include "plumb/base/options.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// [model.dpfp]: options of `dpfp` and of `delta`, which uses the same features.
struct DpfpOptions {
  int64_t nu = 3;
};
void describe(Fields& field, DpfpOptions& options);

/// Its options among those of all kinds of attention, or the defaults.
DpfpOptions dpfp_options(const VariantOptions& options);

/// r = relu([x; −x]); φ(x) = [r ⊙ roll(r, 1); …; r ⊙ roll(r, ν)]. x: (…, size) → (…, 2·size·ν). roll(r, i) moves
/// element j − i to index j.
inline Tensor dpfp(const Tensor& x, int64_t nu) {
  const Tensor r = at::relu(at::cat({x, -x}, -1));
  std::vector<Tensor> products;
  for (int64_t i = 1; i <= nu; ++i) products.push_back(r * at::roll(r, i, -1));
  return at::cat(products, -1);
}

}  // namespace plumb
