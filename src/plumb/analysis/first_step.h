// An optimizer's first step from a model's parameters: its direction, and how it changes the logits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/loss_function.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/options.h"

namespace plumb {

/// u (parameters) in w ← w − η·u, the first step of an optimizer without weight decay from these parameters w, given
/// the gradient (parameters): g for SGD, g/(|g| + eps) for Adam, (‖w‖/‖Adam's‖)·Adam's for LAMB. Computed in float64;
/// independent of the learning rate η, to which a first step is proportional. Of an optimizer whose first steps only
/// prepare its state (Optimizer::beginning, SOAP), the first that moves all parameters, where the earlier ones had the
/// same gradient at the same w. Model::constrain is left to the caller.
Tensor first_update(const Parameters& parameters, const Tensor& gradient, const std::string& optimizer,
                    const VariantOptions& options = {});

/// How fast a part of the update changes the logits.
struct LogitChange {
  std::optional<LayerId> layer;  // whose parameters move; empty: those outside the layers (embeddings, final norms)
  /// The root mean square, over labels and classes, of dz/dη = J·u, where u is 0 outside this layer. The mean over
  /// classes, which changes no probability, is subtracted first.
  double change = 0;
};
void describe(Fields& field, LogitChange& change);

/// The change of the logits by layer, per unit of learning rate. Exact: J·u by reverse over reverse. The processes of a
/// group share the batches, and all get the changes. Throws Error if there are no labels.
struct LogitChanges {
  std::vector<LogitChange> by_layer;  // in the order of layer_blocks, then the parameters outside the layers
  double total = 0;                   // of all parameters moving together
};
LogitChanges measure_logit_changes(Model& model, const std::vector<Batch>& batches, const Tensor& update,
                                   const Group& group = {});

/// The same over several initializations; geometric means.
struct LogitChangesReport {
  struct Layer {
    std::optional<LayerId> layer;
    Interval change;
  };
  std::vector<Layer> by_layer;
  Interval total;
};

/// Throws Error if there are no measurements.
LogitChangesReport summarize(const std::vector<LogitChanges>& measurements);

}  // namespace plumb
