#include "plumb/nn/init/init.h"

#include <cmath>

#include "plumb/base/parallel.h"
#include "plumb/ops/dispatch.h"

namespace plumb {
namespace {

void fill(const Tensor& tensor, const std::function<double()>& draw) {
  ops::dispatch(tensor, [&]<typename T>() {
    T* out = tensor.data_ptr<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) out[i] = static_cast<T>(draw());
  });
}

}  // namespace

Registry<InitFactory>& initialisations() {
  static Registry<InitFactory> registry("initialisation");
  return registry;
}

void fill_normal(const Tensor& tensor, double deviation, Random& random) {
  fill(tensor, [&] { return deviation * random.normal(); });
}

void fill_uniform(const Tensor& tensor, double bound, Random& random) {
  fill(tensor, [&] { return bound * (2 * random.uniform() - 1); });
}

void for_each_matrix(const Parameter& parameter,
                     const std::function<void(const Tensor&, int64_t, int64_t)>& fill_matrix) {
  const Tensor whole = parameter.value.detach();
  const int64_t parts = parameter.role == Role::stacked_qkv ? 3 : 1;
  for (const Tensor& matrix : whole.chunk(parts, 0)) fill_matrix(matrix, matrix.size(1), matrix.size(0));
}

void initialise(const Parameters& parameters, const std::string& kind, uint64_t seed) {
  const InitFactory& fill_weight = initialisations().at(kind).make;
  const auto& all = parameters.all();
  parallel_items(static_cast<int64_t>(all.size()), [&](int64_t i) {
    const at::NoGradGuard no_graph;  // grad mode is a property of the thread
    const Parameter& parameter = all[static_cast<size_t>(i)];
    const Tensor value = parameter.value.detach();
    Random random(seed, parameter.name);
    switch (parameter.role) {
      case Role::weight:
      case Role::stacked_qkv:
      case Role::attention_output:
        fill_weight(parameter, random);
        break;
      case Role::embedding:
        fill_normal(value, 1.0 / std::sqrt(static_cast<double>(value.size(1))), random);
        break;
      case Role::position:
        fill_normal(value, 0.02, random);
        break;
      case Role::gain:
        value.fill_(1);
        break;
      case Role::bias:
      case Role::shift:
        value.zero_();
        break;
    }
  });
}

}  // namespace plumb
