#include "plumb/ops/path.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace plumb::ops {
namespace {

bool kernels_wanted() {
  static const bool wanted = [] {
    const char* choice = std::getenv("PLUMB_KERNELS");
    return choice == nullptr || std::string_view(choice) != "off";
  }();
  return wanted;
}

bool uses_kernels(const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return (type == at::kFloat || type == at::kDouble) && kernels_serve(tensor.device());
}

}  // namespace

bool kernels_serve(const at::Device& device) { return kKernelsBuilt && kernels_wanted() && device.is_cpu(); }

bool gpu_serves(const Tensor& tensor) { return kGpuBuilt && tensor.is_cuda() && kernels_wanted(); }

Path path_of(const Tensor& tensor, bool gpu) {
  if (uses_kernels(tensor)) return Path::kernels;
  return gpu && gpu_serves(tensor) ? Path::gpu : Path::reference;
}

Path path_of(const std::vector<Tensor>& tensors) {
  const bool all =
      std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return uses_kernels(tensor); });
  if (all) return Path::kernels;
  return gpu_serves(tensors.front()) ? Path::gpu : Path::reference;
}

}  // namespace plumb::ops
