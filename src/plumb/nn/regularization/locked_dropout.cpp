#include "plumb/nn/regularization/locked_dropout.h"

#include <vector>

#include "plumb/ops/index.h"

namespace plumb {

Tensor locked_dropout(const Tensor& x, const Ragged& layout, double p, const ops::DropoutKey& key) {
  if (p == 0 || x.numel() == 0) return x;
  ops::DropoutKey by_sequence{key.seed, key.stream, {}};
  std::vector<int64_t> sequence_of;  // each token
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    by_sequence.runs.push_back({s, layout.origin(s)});
    sequence_of.insert(sequence_of.end(), static_cast<size_t>(layout.length(s)), s);
  }
  const Tensor factors = ops::dropout(at::ones({layout.sequences(), x.size(1)}, x.options()), p, by_sequence);
  return x * factors.index_select(0, ops::index_beside(x, sequence_of));
}

}  // namespace plumb
