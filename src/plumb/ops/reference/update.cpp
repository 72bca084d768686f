#include <utility>

#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {
namespace {

// One step of one piece. g is scaled; all tensors have the parameter's shape.

Tensor adam_change(const AdamUpdate& u, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& w) {
  m.mul_(u.beta1).add_(g, 1 - u.beta1);
  v.mul_(u.beta2).addcmul_(g, g, 1 - u.beta2);
  return u.step * (m / (v.sqrt() * u.root_scale + u.eps)) + u.decay * w;
}

void step(const AdamUpdate& u, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& w) {
  w.sub_(adam_change(u, g, m, v, w));
}

void step(const LambUpdate& u, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& w) {
  const Tensor change = adam_change(u, g, m, v, w);
  if (!u.adapts) return static_cast<void>(w.sub_(change, u.rate));
  const Tensor length = w.norm(), moved = change.norm();
  const Tensor ratio = at::where(at::logical_or(length == 0, moved == 0), at::ones_like(length), length / moved);
  w.sub_(change * ratio, u.rate);
}

void step(const SgdUpdate& u, const Tensor& g, const Tensor& b, const Tensor& w) {
  const Tensor d = g + u.decay * w;
  b.mul_(u.momentum).add_(d);
  w.sub_(u.nesterov ? d + u.momentum * b : b, u.rate);
}

void step(const AveragedUpdate& u, const Tensor& g, const Tensor& a, const Tensor& w) {
  w.sub_(g + u.decay * w, u.rate);
  a.add_(w - a, u.share);
}

void step(const LionUpdate& u, const Tensor& g, const Tensor& m, const Tensor& w) {
  const Tensor mean = m * u.beta1 + (1 - u.beta1) * g;
  m.mul_(u.beta2).add_(g, 1 - u.beta2);
  const Tensor sign = at::where(mean.isnan(), mean, mean.sign());  // at::sign makes NaN 0
  w.sub_(sign + u.decay * w, u.rate);
}

void step(const ScheduleFreeUpdate& u, const Tensor& g, const Tensor& z, const Tensor& x, const Tensor& v,
          const Tensor& w) {
  v.mul_(u.beta2).addcmul_(g, g, 1 - u.beta2);
  z.sub_(g / (v.sqrt() * u.root_scale + u.eps) + u.decay * w, u.rate);
  x.add_(z - x, u.share);
  w.copy_(z + u.beta1 * (x - z));
}

}  // namespace

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces) {
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto like = pieces.back()[i].sizes();
    const Tensor g = updates[i].gradient_scale * gradients[i].reshape(like);
    const auto take = [&]<size_t... kVector>(std::index_sequence<kVector...>) {
      step(updates[i], g, pieces[kVector][i].detach().view(like)...);
    };
    take(std::make_index_sequence<Update::kVectors>());
  }
}

PLUMB_FOR_EACH_UPDATE(PLUMB_INSTANTIATE_UPDATE)
PLUMB_INSTANTIATE_UPDATE(LambUpdate)

DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> sums;
  for (const Tensor& tensor : tensors) sums.push_back(tensor.detach().to(at::kDouble).square().sum());
  return sums.empty() ? DeviceScalar() : DeviceScalar(at::stack(sums).sum());
}

}  // namespace plumb::ops::reference
