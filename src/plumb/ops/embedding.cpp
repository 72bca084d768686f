#include "plumb/ops/embedding.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/profile.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

namespace plumb::ops {

void require_tokens(const std::vector<int64_t>& ids, int64_t vocabulary) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      throw Error(fmt::format("token id {} is outside the vocabulary of {}", id, vocabulary),
                  "was the data prepared for this model?");
    }
  }
}

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale) {
  require_tokens(ids, table.size(0));
  const Timed timed("embedding", [&] {
    const double rows =
        static_cast<double>(table.nbytes()) / static_cast<double>(table.size(0)) * static_cast<double>(ids.size());
    return Cost{0, 2 * rows, 0, 2 * rows + static_cast<double>(table.nbytes())};
  });
  if constexpr (kKernelsBuilt) {
    if (uses_kernels(table)) return fused::embedding(table, ids, scale);
  }
  return reference::embedding(table, ids, scale);
}

}  // namespace plumb::ops
