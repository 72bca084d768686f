// The time of a training step on this machine, put together from measured parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/base/options.h"
#include "plumb/model/config.h"
#include "plumb/plan/kept_activations.h"

namespace plumb::plan {

/// A kind of work in a step.
struct StepPart {
  std::string name;
  double seconds = 0;
  double operations = 0;  // of its matrix products, as FlopCounter counts them; 0: it is bound by memory
};

struct LocalTime {
  double peak_rate = 0;  // operations per second of matrix products at best (ops/peak_rate.h)
  std::vector<StepPart> parts;

  [[nodiscard]] double seconds() const;
  [[nodiscard]] double operations() const;
  /// The share of the peak rate that a part reaches.
  [[nodiscard]] double share(const StepPart& part) const {
    return part.seconds > 0 && peak_rate > 0 ? part.operations / part.seconds / peak_rate : 0;
  }
};

/// A step of `repetitions` batches, each computed at once. Measures on this machine what each kind of work takes for
/// some whole sequences and for some millions of parameters, forward and backward with Plumb's own layers, which takes
/// seconds, and multiplies: projections, attention and feed-forward by layers and tokens, norms with residual sums and
/// dropout by sub-layers and tokens, the cross-entropy over the vocabulary and the embedding by tokens, and the
/// optimizer's step with the norm of the gradient by parameters. Throws Error for models other than decoders.
LocalTime local_time(const ModelConfig& config, const LocalBatch& batch, int64_t repetitions,
                     const std::string& optimizer, const VariantOptions& options);

}  // namespace plumb::plan
