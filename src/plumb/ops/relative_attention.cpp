#include "plumb/ops/relative_attention.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops {
namespace {

void require_size(const char* what, const Tensor& x, int64_t rows, int64_t columns) {
  if (x.size(0) >= rows && x.size(1) == columns) return;
  throw Error(
      fmt::format("relative attention got a {} of ({}, {}), not ({}, {})", what, x.size(0), x.size(1), rows, columns));
}

}  // namespace

Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape) {
  check_shape(shape);
  require_size("content", content, layout.tokens(), shape.width());
  require_size("position", position, layout.tokens(), shape.width());
  require_size("key with value", key_value, layout.tokens(), 2 * shape.kv_width());
  require_size("matrix of distances", distance, layout.longest(), shape.width());
  require_one_device("attention", content, position, key_value, distance);
  static constexpr Operation kRelativeAttention("relative attention", PLUMB_FUSED(relative_attention),
                                                &reference::relative_attention);
  const bool single = content.scalar_type() == at::kFloat && layout.tokens() > 0;
  const Path path = single ? path_of({content, position, key_value, distance}) : Path::reference;
  return kRelativeAttention(path, content, position, key_value, distance, layout, shape);
}

}  // namespace plumb::ops
