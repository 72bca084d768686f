#include "plumb/ops/embedding.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/index.h"

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
  RECORD_USER_SCOPE("embedding");
  return scale * table.index_select(0, index_beside(table, ids));
}

}  // namespace plumb::ops
