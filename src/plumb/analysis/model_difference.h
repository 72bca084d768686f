// Two models on the same batch: where, in the order of a forward pass, they begin to compute something else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/model/model.h"

namespace plumb {

/// One tensor of both models.
struct TensorDifference {
  std::string name;       // of a parameter, or of a place: "decoder.layers.2.feed_forward.output", "logits", "loss"
  std::string only_in{};  // "first" or "second", if the other has none
  std::string shapes{};   // "(4, 8) and (8, 4)", if they differ
  double size = 0;        // Frobenius norm in the first model
  double difference = 0;  // Frobenius norm of the difference, divided by the larger of the two norms; NaN without one

  [[nodiscard]] bool differs(double tolerance) const {
    return !only_in.empty() || !shapes.empty() || !(difference <= tolerance);
  }
};
void describe(Fields& field, TensorDifference& difference);

/// The first place where two models part.
struct FirstDifference {
  std::string place;
  std::string part;  // the sub-layer, layer or stack that computes it; empty for logits and the loss
  double difference = 0;
  std::string last_equal;               // the place before it; empty if there is none
  std::vector<std::string> parameters;  // of this part, those that differ; none: the computation does
};
void describe(Fields& field, FirstDifference& first);

struct ModelDifference {
  std::vector<TensorDifference> parameters;  // in the order of the first model, then what only the second has
  std::vector<TensorDifference> places;      // activations, logits and loss, in the order of a forward pass
  std::vector<TensorDifference> gradients;   // of the loss by parameter, of those that both have in the same shape
  std::optional<FirstDifference> first;      // none: they agree to rounding
};
void describe(Fields& field, ModelDifference& difference);

/// Relative differences up to this are rounding: float64 keeps 1e-16, and a deep model multiplies it.
inline constexpr double kRounding = 1e-10;

/// Compares two models, which should be in float64 on the CPU, in an evaluation pass over the batch.
ModelDifference compare_computations(Model& first, Model& second, const Batch& batch);

/// Four sequences of random tokens that both models can read, with random labels where they classify. Throws Error
/// if one model reads something else than the other.
Batch common_batch(const ModelConfig& first, const ModelConfig& second, uint64_t seed);

}  // namespace plumb
