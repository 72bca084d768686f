#include "plumb/ops/device_scalar.h"

namespace plumb::ops {

std::vector<double> read(const std::vector<DeviceScalar>& numbers) {
  std::vector<double> values;
  std::vector<Tensor> tensors;
  for (const DeviceScalar& number : numbers) {
    values.push_back(number.value_);
    if (number.tensor_.defined()) tensors.push_back(number.tensor_.to(at::kDouble).reshape({}));
  }
  if (tensors.empty()) return values;
  const Tensor here = at::stack(tensors).cpu();
  const double* next = here.data_ptr<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (numbers[i].tensor_.defined()) values[i] = *next++;
  }
  return values;
}

}  // namespace plumb::ops
