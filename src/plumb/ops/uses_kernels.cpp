#include "plumb/ops/uses_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace plumb::ops {

bool kernels_wanted() {
  static const bool wanted = [] {
    const char* choice = std::getenv("PLUMB_KERNELS");
    return choice == nullptr || std::string_view(choice) != "off";
  }();
  return wanted;
}

bool kernels_serve(const at::Device& device) { return kKernelsBuilt && kernels_wanted() && device.is_cpu(); }

bool uses_kernels(const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return (type == at::kFloat || type == at::kDouble) && kernels_serve(tensor.device());
}

bool uses_kernels(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return uses_kernels(tensor); });
}

}  // namespace plumb::ops
