#include "plumb/nn/unit_matrices.h"

#include <optional>

namespace plumb {
namespace {

/// The dimension along which a parameter's vectors lie; empty if they are not normalized.
std::optional<int64_t> vector_dimension(Role role) {
  switch (role) {
    case Role::weight:
    case Role::stacked_qkv:
    case Role::feed_forward_input:
    case Role::embedding:
    case Role::readout:
      return 1;
    case Role::attention_output:
    case Role::feed_forward_output:
      return 0;
    case Role::bias:
    case Role::position:
    case Role::gain:
    case Role::shift:
    case Role::constant:
    case Role::adapter:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void normalize_matrices(const Parameters& parameters, const std::vector<bool>& frozen) {
  const at::NoGradGuard no_graph;
  const auto& all = parameters.all();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<int64_t> dimension = vector_dimension(all[i].role);
    if (!dimension || (i < frozen.size() && frozen[i])) continue;
    const Tensor value = all[i].value.detach();
    const Tensor length = value.square().sum(*dimension, /*keepdim=*/true).sqrt();
    value.div_(at::where(length == 0, at::ones_like(length), length));
  }
}

Tensor tangent_to_unit_matrices(const Parameters& parameters, const Tensor& change) {
  const at::NoGradGuard no_graph;
  const Tensor tangent = change.detach().clone();
  const std::vector<Tensor> pieces = parameters.split(tangent);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    const std::optional<int64_t> dimension = vector_dimension(parameter.role);
    if (!dimension) continue;
    const Tensor w = parameter.value.detach().to(at::kDouble);
    const Tensor square = w.square().sum(*dimension, /*keepdim=*/true);
    const Tensor along = (w * pieces[i]).sum(*dimension, /*keepdim=*/true);
    pieces[i].sub_(w * (along / at::where(square == 0, at::ones_like(square), square)));
  }
  return tangent;
}

}  // namespace plumb
