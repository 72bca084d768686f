#include "plumb/check/gradient.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/loss_function.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"

namespace plumb::check {

std::vector<Tensor> gradient_of(const Task& task, double label_smoothing, Model& model,
                                const std::vector<Batch>& batches, double& loss) {
  const double weight = total_weight(batches);
  const LossFunction function = loss_of(task);
  const at::AutoGradMode with_graph(true);
  const std::vector<Tensor> values = model.parameters().values();
  std::vector<Tensor> sum;
  loss = 0;
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    const Loss found = function(model, batch, {.label_smoothing = label_smoothing, .scale = 1 / weight}, context);
    loss += found.nll / weight;
    std::vector<Tensor> gradient = gradients({found.value}, values, {});
    if (sum.empty()) {
      sum = std::move(gradient);
    } else {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    }
  }
  return sum;
}

std::optional<double> gradient_at_input(const Parameters& parameters, const std::vector<Tensor>& gradient) {
  std::map<LayerId, double> squares;  // the decoder's layers after the encoder's
  for (size_t i = 0; i < gradient.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(parameters.all()[i].name);
    if (id && id->layer) squares[{id->stack, id->layer}] += ops::sum_of_squares({gradient[i]});
  }
  if (squares.size() < 2) return std::nullopt;
  const auto& [last, square] = *squares.rbegin();
  double first = 0;
  for (const auto& [id, each] : squares) {
    if (id.layer == 0 && id != last) first = std::max(first, each);
  }
  return square > 0 ? std::sqrt(first / square) : 0;
}

}  // namespace plumb::check
