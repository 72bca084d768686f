#include "plumb/analysis/loss_function.h"

#include "plumb/base/error.h"

namespace plumb {

LossFunction loss_of(const Task& task) {
  return [&task](Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
    return task.loss(model, batch, options, context);
  };
}

double total_weight(const std::vector<Batch>& batches) {
  double weight = 0;
  for (const Batch& batch : batches) weight += batch.weight();
  if (!(weight > 0)) throw Error("a loss needs at least one target token");
  return weight;
}

}  // namespace plumb
