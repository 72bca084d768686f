#include "plumb/check/gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"

namespace plumb::check {

std::vector<Tensor> gradient_of(const Task& task, double label_smoothing, Model& model,
                                const std::vector<Batch>& batches, double& loss) {
  const MeanLoss mean = mean_loss(model, batches, label_smoothing, loss_of(task));
  loss = mean.nll;
  return model.parameters().split(mean.gradient);
}

std::optional<double> gradient_at_input(const Parameters& parameters, const std::vector<Tensor>& gradient) {
  std::map<LayerId, double> squares;  // the decoder's layers after the encoder's
  for (size_t i = 0; i < gradient.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(parameters.all()[i].name);
    if (id && id->layer) squares[{id->stack, id->layer}] += ops::sum_of_squares({gradient[i]});
  }
  if (squares.size() < 2) return std::nullopt;
  const auto& [last, square] = *squares.rbegin();
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [id, each] : squares) {
    if (id.layer == 0 && id != last) first = std::min(first, each);
  }
  return square > 0 ? std::sqrt(first / square) : 0;
}

}  // namespace plumb::check
