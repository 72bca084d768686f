// The time of a training step on this machine, assembled from measured parts.
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
  double operations = 0;  // of its matrix products, as FlopCounter counts them; 0 for memory-bound work
};

struct LocalTime {
  double peak_rate = 0;  // operations per second of matrix products at best (ops/peak_rate.h)
  std::vector<StepPart> parts;

  [[nodiscard]] double seconds() const;
  [[nodiscard]] double operations() const;
  /// The fraction of the peak rate that a part reaches.
  [[nodiscard]] double share(const StepPart& part) const {
    return part.seconds > 0 && peak_rate > 0 ? part.operations / part.seconds / peak_rate : 0;
  }
};

/// A step of `repetitions` batches, each in one pass. Times each kind of work on this machine, forward and
/// backward with Plumb's own layers, on a few whole sequences and some millions of parameters, which takes seconds, and
/// scales the results: projections, attention and feed-forward by layers and tokens, norms with residual sums and
/// dropout by sub-layers and tokens, each with a second forward pass if layers are recomputed, the cross-entropy over
/// the vocabulary and the embedding by tokens, and the optimizer's step with the gradient norm by parameters. Throws
/// Error for models other than decoders.
LocalTime local_time(const ModelConfig& config, const LocalBatch& batch, int64_t repetitions,
                     const std::string& optimizer, const VariantOptions& options);

}  // namespace plumb::plan
