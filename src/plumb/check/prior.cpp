#include "plumb/check/prior.h"

#include "plumb/analysis/initialization.h"
#include "plumb/base/error.h"

namespace plumb::check {
namespace {

/// c, and the standard deviation of log₂ η₅₀ around c·η_c. Under Adam and other optimizers whose first step is about a
/// sign of the gradient, η₅₀/η_c was .013, .08, .006 and .4 for four residual schemes with 6+6 layers; under gradient
/// descent, η₅₀ was within a factor of 2 of η_c(1 − μ).
struct Ratio {
  double factor, octaves;
};
constexpr Ratio kOfSigns = {0.04, 2.5};
constexpr Ratio kOfGradients = {0.7, 1.5};
constexpr double kUnmeasured = 4;  // octaves around the planned rate

}  // namespace

Prior first_belief(const Subject& subject, Model& model, const std::vector<Batch>& batches, double peak_rate) {
  const TrainConfig& train = subject.config.train;
  const double guess = peak_rate > 0 ? peak_rate : 1e-3;
  try {
    const FirstStep step = measure_first_step(model, batches, train.optimizer, train.options, train.label_smoothing);
    if (step.critical) {
      const Ratio& ratio = train.optimizer == "sgd" ? kOfGradients : kOfSigns;
      const double critical = step.critical->rate();
      return {{ratio.factor * critical / step.momentum_gain, ratio.octaves}, critical};
    }
  } catch (const Error&) {  // an optimizer without such a step
  }
  return {{guess, kUnmeasured}, std::nullopt};
}

}  // namespace plumb::check
