#include "plumb/ops/activation.h"

#include "plumb/ops/implementations.h"

namespace plumb::ops {
namespace reference {

Tensor silu(const Tensor& x) { return at::silu(x); }
Tensor gelu_tanh(const Tensor& x) { return at::gelu(x, "tanh"); }

}  // namespace reference

Tensor silu(const Tensor& x) {
  static constexpr Operation kSilu("SiLU", PLUMB_FUSED(silu), &reference::silu);
  return kSilu(path_of(x), x);
}

Tensor gelu_tanh(const Tensor& x) {
  static constexpr Operation kGelu("GELU", PLUMB_FUSED(gelu_tanh), &reference::gelu_tanh);
  return kGelu(path_of(x), x);
}

}  // namespace plumb::ops
