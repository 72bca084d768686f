#include "plumb/ops/update.h"

#include <type_traits>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

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
  const at::NoGradGuard no_graph;
  constexpr auto kGpu = [] {
    if constexpr (kGpuBuilt && std::is_same_v<Update, AdamUpdate>) return &gpu::update<Update>;
    return static_cast<decltype(&reference::update<Update>)>(nullptr);
  }();
  static constexpr Operation kUpdate("update of parameters", PLUMB_FUSED(update<Update>), &reference::update<Update>,
                                     kGpu);
  kUpdate(path_of(pieces.back()), updates, gradients, pieces);
}

PLUMB_FOR_EACH_UPDATE(PLUMB_INSTANTIATE_UPDATE)
PLUMB_INSTANTIATE_UPDATE(LambUpdate)

DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors) {
  static constexpr Operation kSum("sum of squares", PLUMB_FUSED(sum_of_squares), &reference::sum_of_squares,
                                  PLUMB_GPU(sum_of_squares));
  return kSum(path_of(tensors), tensors);
}

}  // namespace plumb::ops
