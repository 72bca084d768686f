#include "plumb/ops/embedding.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= table.size(0)) {
      throw Error(fmt::format("token id {} is outside the vocabulary of {}", id, table.size(0)),
                  "was the data prepared for this model?");
    }
  }
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(table)) return fused::embedding(table, ids, scale);
  }
  return reference::embedding(table, ids, scale);
}

}  // namespace plumb::ops
