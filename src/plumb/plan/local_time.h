// The time of a training step on this machine, assembled from measured parts.
#pragma once

#include <algorithm>
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
  double operations = 0;  // of its matrix products, as FlopCounter counts them; 0 if it has none
  double bytes = 0;       // that it has to read and write at least, if caches hold nothing from one pass to the next
};

struct LocalTime {
  double peak_rate = 0;    // operations per second of matrix products at best (ops/peak_rate.h)
  double memory_rate = 0;  // bytes per second at best
  std::vector<StepPart> parts;

  [[nodiscard]] double seconds() const;
  [[nodiscard]] double operations() const;
  /// Whether memory limits a part, rather than arithmetic: the roofline (Williams et al. 2009,
  /// doi 10.1145/1498765.1498785).
  [[nodiscard]] bool is_bound_by_memory(const StepPart& part) const {
    return part.bytes / memory_rate > part.operations / peak_rate;
  }
  /// The fraction of that limit's rate that a part reaches.
  [[nodiscard]] double share(const StepPart& part) const {
    return std::max(part.operations / peak_rate, part.bytes / memory_rate) / part.seconds;
  }
};

/// A step of `repetitions` batches, each in one pass. Times each kind of work on this machine, forward and
/// backward with Plumb's own layers, on a few whole sequences and some millions of parameters, which takes seconds, and
/// scales the results: projections, attention and feed-forward by layers and tokens, norms with residual sums and
/// dropout by sub-layers and tokens, each with a second forward pass if layers are recomputed, the cross-entropy over
/// the vocabulary and the embedding by tokens, and the optimizer's step with the gradient norm by parameters. Throws
/// Error for models other than decoders.
///
/// Bytes are of tensors that every pass reads and writes: of a product, forward and backward, both factors and the
/// result, three times; of attention, queries, keys, values and result, and their gradients; of norm, dropout and sum,
/// four vectors forward and five backward; no logits; of the optimizer, the gradient twice, and parameters and state
/// read and written. Recomputation is not counted.
LocalTime local_time(const ModelConfig& config, const LocalBatch& batch, int64_t repetitions,
                     const std::string& optimizer, const VariantOptions& options);

}  // namespace plumb::plan
