#include "plumb/ops/update.h"

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/gpu/gpu.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {
namespace {

void check(size_t updates, const std::vector<Tensor>& pieces, const std::vector<Tensor>& gradients) {
  bool match = pieces.size() == gradients.size() && pieces.size() == updates;
  for (size_t i = 0; match && i < pieces.size(); ++i) {
    match = pieces[i].numel() == gradients[i].numel() && pieces[i].is_contiguous() &&
            pieces[i].scalar_type() == pieces[0].scalar_type() && gradients[i].scalar_type() == pieces[0].scalar_type();
  }
  for (size_t i = 0; match && i < pieces.size(); ++i)
    require_one_device("update of parameters", pieces[0], pieces[i], gradients[i]);
  if (!match) throw Error("gradients and parameters of an update do not match");
}

}  // namespace

void adam_update(const std::vector<AdamUpdate>& updates, const std::vector<Tensor>& gradients,
                 const std::vector<Tensor>& m, const std::vector<Tensor>& v, const std::vector<Tensor>& parameters) {
  for (const std::vector<Tensor>* pieces : {&m, &v, &parameters}) check(updates.size(), *pieces, gradients);
  const at::NoGradGuard no_graph;
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(parameters)) return fused::adam_update(updates, gradients, m, v, parameters);
  }
  if constexpr (kGpuBuilt) {
    if (!parameters.empty() && gpu::serves(parameters[0])) {
      return gpu::adam_update(updates, gradients, m, v, parameters);
    }
  }
  reference::adam_update(updates, gradients, m, v, parameters);
}

void sgd_update(const std::vector<SgdUpdate>& updates, const std::vector<Tensor>& gradients,
                const std::vector<Tensor>& momentum, const std::vector<Tensor>& parameters) {
  for (const std::vector<Tensor>* pieces : {&momentum, &parameters}) check(updates.size(), *pieces, gradients);
  const at::NoGradGuard no_graph;
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(parameters)) return fused::sgd_update(updates, gradients, momentum, parameters);
  }
  reference::sgd_update(updates, gradients, momentum, parameters);
}

Number sum_of_squares(const std::vector<Tensor>& tensors) {
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(tensors)) return fused::sum_of_squares(tensors);
  }
  if constexpr (kGpuBuilt) {
    if (!tensors.empty() && gpu::serves(tensors[0])) return gpu::sum_of_squares(tensors);
  }
  return reference::sum_of_squares(tensors);
}

}  // namespace plumb::ops
