// One sequence at a time, with the scores of all heads at once.
#include <cmath>
#include <limits>
#include <vector>

#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {
namespace {

/// (tokens, heads·size) → (heads, tokens, size)
Tensor by_head(const Tensor& x, int64_t size) { return x.reshape({x.size(0), x.size(1) / size, size}).transpose(0, 1); }

/// The same for keys or values, each repeated for the query heads of its group.
Tensor by_query_head(const Tensor& x, const HeadShape& shape) {
  const Tensor heads = by_head(x, shape.size);
  return shape.group() == 1 ? heads : heads.repeat_interleave(shape.group(), 0);
}

}  // namespace

Tensor relative_attention(const Tensor& content, const Tensor& position, const Tensor& key_value,
                          const Tensor& distance, const Ragged& layout, const HeadShape& shape) {
  std::vector<Tensor> out = {at::zeros({0, shape.width()}, content.options())};
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    const int64_t begin = layout.begin(s), length = layout.length(s);
    if (length == 0) continue;
    const auto rows = [&](const Tensor& x) { return x.narrow(0, begin, length); };
    const Tensor key = by_query_head(rows(key_value).narrow(1, 0, shape.kv_width()), shape);
    const Tensor value = by_query_head(rows(key_value).narrow(1, shape.kv_width(), shape.kv_width()), shape);
    const Tensor by_content = at::matmul(by_head(rows(content), shape.size), key.transpose(1, 2));
    const Tensor by_distance = at::matmul(by_head(rows(position), shape.size),
                                          by_head(distance.narrow(0, 0, length), shape.size).transpose(1, 2));
    const Tensor place = at::arange(length, content.options().dtype(at::kLong));
    const Tensor apart = place.unsqueeze(1) - place;  // i − j, negative for keys not seen
    const Tensor by_position = by_distance.gather(2, apart.clamp_min(0).unsqueeze(0).expand_as(by_distance));
    const Tensor scores = (by_content + by_position) / std::sqrt(static_cast<double>(shape.size));
    const Tensor seen = scores.masked_fill(apart < 0, -std::numeric_limits<double>::infinity());
    out.push_back(at::matmul(at::softmax(seen, -1), value).transpose(0, 1).reshape({length, shape.width()}));
  }
  return at::cat(out, 0);
}

}  // namespace plumb::ops::reference
