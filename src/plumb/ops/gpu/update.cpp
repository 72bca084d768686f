#include <limits>

#include "plumb/ops/implementations.h"

#ifdef PLUMB_GPU_BUILT
namespace plumb::ops::gpu {
namespace {

/// tensors[begin] to tensors[end − 1], in the shapes of `like`.
std::vector<Tensor> piece(const std::vector<Tensor>& tensors, size_t begin, size_t end,
                          const std::vector<Tensor>& like) {
  std::vector<Tensor> views;
  for (size_t i = begin; i < end; ++i) views.push_back(tensors[i].detach().reshape(like[i].sizes()));
  return views;
}

}  // namespace

// LibTorch's operation computes w ← (1 − rate·decay)·w − rate·(m/c₁)/(√v/√c₂ + eps) with c = 1 − βᵗ. At t = ∞, c = 1;
// rate = step/root_scale and eps/root_scale then give step·m/(√v·root_scale + eps).
template <>
void update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<3>& pieces) {
  const auto& [m, v, parameters] = pieces;
  for (size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
    const AdamUpdate& update = updates[begin];
    while (end < parameters.size() && updates[end] == update) ++end;
    std::vector<Tensor> gradient = piece(gradients, begin, end, parameters);
    if (update.root_scale == 0) {  // RAdam's first steps do not divide by √v
      reference::update(std::vector<AdamUpdate>(end - begin, update), gradient,
                        {piece(m, begin, end, parameters), piece(v, begin, end, parameters),
                         piece(parameters, begin, end, parameters)});
      continue;
    }
    if (update.gradient_scale != 1) gradient = at::_foreach_mul(gradient, update.gradient_scale);
    const double rate = update.step / update.root_scale;
    const Tensor forever =
        at::full({}, std::numeric_limits<double>::infinity(), parameters[begin].options().dtype(at::kFloat));
    const std::vector<Tensor> first = piece(m, begin, end, parameters), second = piece(v, begin, end, parameters);
    const std::vector<Tensor> here = piece(parameters, begin, end, parameters);
    at::_fused_adamw_(here, gradient, first, second, {}, std::vector<Tensor>(end - begin, forever), rate, update.beta1,
                      update.beta2, rate == 0 ? 0 : update.decay / rate, update.eps / update.root_scale,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
}

DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return {};
  std::vector<Tensor> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.detach());
  return DeviceScalar(at::stack(at::_foreach_norm(values, 2, at::kDouble)).square().sum());
}

}  // namespace plumb::ops::gpu
#endif
