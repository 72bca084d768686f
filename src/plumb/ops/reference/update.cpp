#include "plumb/ops/reference/reference.h"

namespace plumb::ops::reference {

void adam_update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
                 const std::vector<Tensor>& m, const std::vector<Tensor>& v, const std::vector<Tensor>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const AdamUpdate& update = updates[i];
    const Tensor g = update.gradient_scale * gradients[i].reshape(parameters[i].sizes());
    const Tensor first = m[i].view_as(g), second = v[i].view_as(g);
    first.mul_(update.beta1).add_(g, 1 - update.beta1);
    second.mul_(update.beta2).addcmul_(g, g, 1 - update.beta2);
    const Tensor change = first / (second.sqrt() * update.root_scale + update.eps);
    const Tensor w = parameters[i].detach();
    w.sub_(update.step * change + update.decay * w);
  }
}

void sgd_update(const std::vector<SgdUpdate>& updates, const std::vector<Tensor>& gradients,
                const std::vector<Tensor>& momentum, const std::vector<Tensor>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const SgdUpdate& update = updates[i];
    const Tensor w = parameters[i].detach();
    const Tensor b = momentum[i].view_as(w);
    const Tensor d = update.gradient_scale * gradients[i].reshape(w.sizes()) + update.decay * w;
    b.mul_(update.momentum).add_(d);
    w.sub_(update.nesterov ? d + update.momentum * b : b, update.rate);
  }
}

Number sum_of_squares(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> sums;
  for (const Tensor& tensor : tensors) sums.push_back(tensor.detach().to(at::kDouble).square().sum());
  return sums.empty() ? Number() : Number(at::stack(sums).sum());
}

}  // namespace plumb::ops::reference
