#include "plumb/ops/index.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

Tensor embedding(const Tensor& table, const std::vector<int64_t>& ids, double scale) {
  return scale * table.index_select(0, index_beside(table, ids));
}

}  // namespace plumb::ops::reference
