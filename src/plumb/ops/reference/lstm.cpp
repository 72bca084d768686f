#include "plumb/ops/reference/reference.h"

namespace plumb::ops::reference {

LstmState lstm_cell(const Tensor& gates, const Tensor& cell) {
  const std::vector<Tensor> parts = gates.chunk(4, 1);
  const Tensor next = at::sigmoid(parts[1]) * cell + at::sigmoid(parts[0]) * at::tanh(parts[2]);
  return {at::sigmoid(parts[3]) * at::tanh(next), next};
}

}  // namespace plumb::ops::reference
