#include "plumb/ops/relative_attention.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fused/fused.h"
#include "plumb/ops/profile.h"
#include "plumb/ops/reference/reference.h"
#include "plumb/ops/uses_kernels.h"

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
  const Timed timed("relative attention", [&] {  // three products of half of all pairs forward, six backward
    double pairs = 0;
    for (int64_t i = 0; i < layout.sequences(); ++i)
      pairs += static_cast<double>(layout.length(i)) * static_cast<double>(layout.length(i)) / 2;
    const double product = 2 * pairs * static_cast<double>(shape.width());
    const auto bytes = static_cast<double>(2 * content.nbytes() + position.nbytes() + key_value.nbytes());
    return Cost{3 * product, bytes, 6 * product, 2 * bytes};
  });
  if constexpr (kKernelsBuilt) {
    const bool single = content.scalar_type() == at::kFloat && layout.tokens() > 0;
    if (single && uses_kernels({content, position, key_value, distance}))
      return fused::relative_attention(content, position, key_value, distance, layout, shape);
  }
  return reference::relative_attention(content, position, key_value, distance, layout, shape);
}

}  // namespace plumb::ops
