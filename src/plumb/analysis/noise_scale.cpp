#include "plumb/analysis/noise_scale.h"

#include <fmt/format.h>

#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/update.h"

namespace plumb {

double NoiseScale::examples() const {
  return square_gradient > 0 ? trace / square_gradient : std::numeric_limits<double>::quiet_NaN();
}

NoiseScale noise_scale(double mean_square_norm, double square_norm_of_mean, int64_t batches, int64_t examples) {
  if (batches < 2 || examples < 1)
    throw Error(fmt::format("{} batches of {} examples show no noise", batches, examples), "at least two are needed");
  const auto small = static_cast<double>(examples);
  const double big = small * static_cast<double>(batches);
  NoiseScale found{mean_square_norm, square_norm_of_mean};
  found.square_gradient = (big * square_norm_of_mean - small * mean_square_norm) / (big - small);
  found.trace = (mean_square_norm - square_norm_of_mean) / (1 / small - 1 / big);
  return found;
}

NoiseScale measure_noise_scale(Model& model, const std::vector<Batch>& batches, int64_t examples,
                               double label_smoothing, const LossFunction& loss) {
  const auto count = static_cast<double>(batches.size());
  const at::AutoGradMode with_graph(true);
  const std::vector<Tensor> values = model.parameters().values();
  const LossOptions options{.label_smoothing = label_smoothing, .scale = count / total_weight(batches)};
  Tensor mean;
  double squares = 0;
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    const Tensor gradient = joined(gradients({loss(model, batch, options, context).value}, values, {}));
    squares += ops::sum_of_squares({gradient});
    if (mean.defined()) {
      mean.add_(gradient);
    } else {
      mean = gradient;
    }
  }
  const double of_sum = ops::sum_of_squares({mean});
  return noise_scale(squares / count, of_sum / (count * count), std::ssize(batches), examples);
}

}  // namespace plumb
