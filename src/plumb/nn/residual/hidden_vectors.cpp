#include "plumb/nn/residual/hidden_vectors.h"

namespace plumb {

HiddenVectorsScheme::HiddenVectorsScheme(Parameters& parameters, const StackShape& shape, int64_t count)
    : shape_(shape), count_(count), norms_(parameters, shape, "norm") {}

Stream HiddenVectorsScheme::enter(const Tensor& x, ForwardContext&) const {
  return {x, x.unsqueeze(1).expand({-1, count_, -1}).contiguous()};
}

void HiddenVectorsScheme::apply(Stream& stream, const SubLayer& f, ForwardContext& context) const {
  const Tensor& hidden = stream.second;  // (tokens, n, d)
  const Coefficients of = coefficients(static_cast<size_t>(index_of(f, shape_)), hidden, context);
  const Tensor read = (of.read.unsqueeze(2) * hidden).sum(1);  // faster than a product for each token
  const Tensor y = context.dropout(watched_forward(f, norms_.at(f)(read, context), context));
  stream.second = at::matmul(of.mix, hidden) + of.write.unsqueeze(2) * y.unsqueeze(1);
  if (context.watched()) context.show({f.id, Point::stream}, stream.second.sum(1));
}

Tensor HiddenVectorsScheme::leave(const Stream& stream, ForwardContext& context) const {
  return ResidualScheme::leave({stream.second.sum(1)}, context);
}

}  // namespace plumb
