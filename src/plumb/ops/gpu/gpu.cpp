#include "plumb/ops/gpu/gpu.h"

#include "plumb/ops/uses_kernels.h"

namespace plumb::ops::gpu {

bool serves(const Tensor& tensor) { return kGpuBuilt && tensor.is_cuda() && kernels_wanted(); }

}  // namespace plumb::ops::gpu
