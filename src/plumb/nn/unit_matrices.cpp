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

}  // namespace plumb
