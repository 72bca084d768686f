#include "plumb/parallel/serve_products.h"

namespace plumb {
namespace {

/// Returns the numbers that rank 0 passes, on all ranks.
std::vector<int64_t> broadcast_numbers(const Group& group, const std::vector<int64_t>& numbers) {
  const Tensor count = at::full({1}, std::ssize(numbers), at::kLong);
  group.broadcast(count);
  const Tensor message =
      group.rank() == 0 ? at::tensor(numbers, at::kLong) : at::empty({count.item<int64_t>()}, at::kLong);
  group.broadcast(message);
  const auto* first = message.data_ptr<int64_t>();
  return {first, first + message.numel()};
}

/// Computes what rank 0 asks for until it sends an empty message.
void follow(const Group& group, const at::TensorOptions& type, const ProductFunction& products) {
  for (;;) {
    // The number of vectors, their sizes, and `which`.
    const std::vector<int64_t> message = broadcast_numbers(group, {});
    if (message.empty()) return;
    const auto sizes = message.begin() + 1, which = sizes + message.front();
    std::vector<Tensor> vectors;
    for (auto size = sizes; size != which; ++size) {
      vectors.push_back(at::empty({*size}, type));
      group.broadcast(vectors.back());
    }
    products({which, message.end()}, vectors);
  }
}

}  // namespace

void serve_products(const Group& group, const at::TensorOptions& type, const ProductFunction& products,
                    const std::function<void(const ProductFunction&)>& lead) {
  if (group.size() == 1) {
    lead(products);
    return;
  }
  if (group.rank() > 0) {
    follow(group, type, products);
    return;
  }
  lead([&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
    std::vector<int64_t> message = {std::ssize(vectors)};
    for (const Tensor& v : vectors) message.push_back(v.numel());
    message.insert(message.end(), which.begin(), which.end());
    broadcast_numbers(group, message);
    for (const Tensor& v : vectors) group.broadcast(v);
    return products(which, vectors);
  });
  broadcast_numbers(group, {});
}

}  // namespace plumb
