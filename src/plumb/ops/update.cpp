#include "plumb/ops/update.h"

#include <type_traits>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/gpu/gpu.h"
#include "plumb/ops/profile.h"
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

template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces) {
  for (const std::vector<Tensor>& list : pieces) check(updates.size(), list, gradients);
  if (updates.empty()) return;
  const Timed timed("update of parameters", [&] {
    double bytes = 0;
    for (const Tensor& gradient : gradients) bytes += static_cast<double>(gradient.nbytes());
    for (const std::vector<Tensor>& list : pieces) {
      for (const Tensor& piece : list) bytes += 2 * static_cast<double>(piece.nbytes());
    }
    return Cost{0, bytes, 0, 0};
  });
  const at::NoGradGuard no_graph;
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(pieces.back())) return fused::update(updates, gradients, pieces);
  }
  if constexpr (kGpuBuilt && std::is_same_v<Update, AdamUpdate>) {
    if (gpu::serves(gradients[0])) return gpu::update(updates, gradients, pieces);
  }
  reference::update(updates, gradients, pieces);
}

PLUMB_FOR_EACH_UPDATE(PLUMB_INSTANTIATE_UPDATE);
PLUMB_INSTANTIATE_UPDATE(LambUpdate, lamb);

Number sum_of_squares(const std::vector<Tensor>& tensors) {
  const Timed timed("sum of squares", [&] {
    double bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<double>(tensor.nbytes());
    return Cost{0, bytes, 0, 0};
  });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(tensors)) return fused::sum_of_squares(tensors);
  }
  if constexpr (kGpuBuilt) {
    if (!tensors.empty() && gpu::serves(tensors[0])) return gpu::sum_of_squares(tensors);
  }
  return reference::sum_of_squares(tensors);
}

}  // namespace plumb::ops
