#include "plumb/ops/number.h"

namespace plumb::ops {

std::vector<double> read(const std::vector<Number>& numbers) {
  std::vector<double> values;
  std::vector<Tensor> found;
  for (const Number& number : numbers) {
    values.push_back(number.value_);
    if (number.found_.defined()) found.push_back(number.found_.to(at::kDouble).reshape({}));
  }
  if (found.empty()) return values;
  const Tensor here = at::stack(found).cpu();
  const double* next = here.data_ptr<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (numbers[i].found_.defined()) values[i] = *next++;
  }
  return values;
}

}  // namespace plumb::ops
