#include "plumb/model/batch_norm_head.h"

#include <vector>

#include "plumb/nn/regularization.h"

namespace plumb {

BatchNormHead::BatchNormHead(Parameters& parameters, const Shape& shape)
    : pooled_dropout_(shape.pooled_dropout), dropout_(shape.dropout) {
  const NormFactory& make = norms().at("batchnorm").make;
  first_ = make(parameters, "pooler.norm1", shape.width, shape.eps);
  linear_ = Linear(parameters, "pooler", shape.size, shape.width, Role::weight);
  second_ = make(parameters, "pooler.norm2", shape.size, shape.eps);
}

Tensor BatchNormHead::operator()(const Tensor& pooled, const Ragged& layout, ForwardContext& context) const {
  // A sequence has one row here; its mask is that of the row at which its tokens begin.
  Ragged rows(std::vector<int64_t>(static_cast<size_t>(layout.sequences()), 1));
  rows.set_origins(layout.origins());
  const auto dropped = [&](const Tensor& x, double p) {
    return context.regularizes() ? locked_dropout(x, rows, p, context.mask_key()) : x;
  };
  const Tensor hidden = at::relu(linear_(dropped((*first_)(pooled, context), pooled_dropout_)));
  return dropped((*second_)(hidden, context), dropout_);
}

}  // namespace plumb
