#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return rms_norm(x - x.mean(1, /*keepdim=*/true), gamma, eps) + beta;
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  return x * (x.square().mean(1, /*keepdim=*/true) + eps).rsqrt() * gamma;
}

}  // namespace plumb::ops::reference
