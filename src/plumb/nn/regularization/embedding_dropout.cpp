#include "plumb/nn/regularization/embedding_dropout.h"

#include "plumb/ops/index.h"

namespace plumb {

Tensor embedding_dropout(const Tensor& embedded, const std::vector<int64_t>& tokens, int64_t vocabulary, double p,
                         const ops::DropoutKey& key) {
  if (p == 0) return embedded;
  const Tensor factors = ops::dropout(at::ones({vocabulary, 1}, embedded.options()), p, key);
  return embedded * factors.index_select(0, ops::index_beside(embedded, tokens));
}

}  // namespace plumb
