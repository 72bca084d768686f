#include "plumb/nn/regularization/activation_penalty.h"

namespace plumb {

Tensor activation_penalty(const Tensor& h) {
  if (h.numel() == 0) return at::zeros({}, h.options());
  return (h * h).mean();
}

}  // namespace plumb
