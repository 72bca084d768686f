// Parameter updates of optimizers, in one pass over memory (LAMB: two), in place and without an autograd graph.
#pragma once

#include <array>
#include <vector>

#include "plumb/ops/device_scalar.h"
#include "plumb/ops/kernels/update_rules.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// The vectors that an update changes: lists with a tensor for each piece, in the order that update_rules.h names them.
template <size_t kVectors>
using UpdatedPieces = std::array<std::vector<Tensor>, kVectors>;

/// One step of an optimizer over a list of pieces, such as one per parameter. The gradient, optimizer state and
/// parameter of piece i have the same number of elements, and each piece has its own settings. State and parameters
/// must be contiguous. Threads share the work evenly, whatever the sizes of the pieces: one large piece takes as long
/// as many small ones with as many elements. Throws Error if the lists do not match or the element types differ.
/// `Update`: one of update_rules.h.
template <typename Update>
void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients,
            const UpdatedPieces<Update::kVectors>& pieces);
/// Its instantiation for one rule, for PLUMB_FOR_EACH_UPDATE.
#define PLUMB_INSTANTIATE_UPDATE(Update)                                                         \
  template void update(const std::vector<Update>& updates, const std::vector<Tensor>& gradients, \
                       const UpdatedPieces<Update::kVectors>& pieces);

/// Σ x² over all elements of all tensors, in float64, in an order independent of the number of threads.
DeviceScalar sum_of_squares(const std::vector<Tensor>& tensors);

}  // namespace plumb::ops
