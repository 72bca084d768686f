// What a model can reach that has learned only how frequent each label is.
#pragma once

#include "plumb/task/dataset.h"

namespace plumb {

/// The entropy of the frequencies of a split's labels, in nats per label: −Σ p ln p, weighted as the labels are in the
/// loss. No model that ignores its input has a smaller loss on this split, not even one that was fitted to it; so a
/// trained model with a loss of at least this much has failed. 0 without labels.
double label_entropy(const Dataset& dataset);

}  // namespace plumb
