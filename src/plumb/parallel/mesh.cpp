#include "plumb/parallel/mesh.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {

Mesh::Mesh(const Group& group, int64_t tensor_size) : all(group), data(group) {
  if (tensor_size == 1) return;
  if (tensor_size < 1 || group.size() % tensor_size != 0) {
    throw Error(fmt::format("{} processes cannot be divided into groups of {}", group.size(), tensor_size),
                "start a multiple of that number");
  }
  tensor = group.split(group.rank() / tensor_size);
  data = group.split(group.rank() % tensor_size);
}

ExchangeCost Mesh::cost() const {
  ExchangeCost cost = all.cost();
  if (!divided()) return cost;
  for (const Group* group : {&data, &tensor}) {
    const ExchangeCost more = group->cost();
    cost.seconds += more.seconds;
    cost.bytes += more.bytes;
    cost.calls += more.calls;
  }
  return cost;
}

void Mesh::leave() const {
  if (divided()) {
    data.leave();
    tensor.leave();
  }
  all.leave();
}

}  // namespace plumb
