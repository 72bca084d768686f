#include "plumb/divided/mesh.h"

#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb {

void Mesh::require(int64_t processes, int64_t tensor_size, int64_t pipeline_size) {
  const int64_t model = tensor_size * pipeline_size;
  if (tensor_size >= 1 && pipeline_size >= 1 && processes % model == 0) return;
  throw Error(fmt::format("{} processes cannot be divided into groups of {}", processes, model),
              "start a multiple of that number");
}

Mesh::Mesh(const Group& group, int64_t tensor_size, int64_t pipeline_size) : all(group), data(group) {
  const int64_t model = tensor_size * pipeline_size;
  if (model == 1) return;
  require(group.size(), tensor_size, pipeline_size);
  const int64_t rank = group.rank();
  tensor = group.split(rank / tensor_size);
  if (pipeline_size > 1) pipeline = group.split(rank / model * tensor_size + rank % tensor_size);
  data = group.split(rank % model);
}

ExchangeCost Mesh::cost() const {
  ExchangeCost cost = all.cost();
  if (!divided()) return cost;
  for (const Group* group : {&data, &pipeline, &tensor}) cost += group->cost();
  return cost;
}

void Mesh::leave() const {
  if (divided()) {
    data.leave();
    pipeline.leave();
    tensor.leave();
  }
  all.leave();
}

}  // namespace plumb
