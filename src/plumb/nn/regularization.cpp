#include "plumb/nn/regularization.h"

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

Tensor embedding_dropout(const Tensor& embedded, const std::vector<int64_t>& tokens, int64_t vocabulary, double p,
                         const ops::DropoutKey& key) {
  if (p == 0) return embedded;
  const Tensor factors = ops::dropout(at::ones({vocabulary, 1}, embedded.options()), p, key);
  return embedded * factors.index_select(0, ops::index_beside(embedded, tokens));
}

Tensor activation_penalty(const Tensor& h) {
  if (h.numel() == 0) return at::zeros({}, h.options());
  return (h * h).mean();
}

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
