// Finds a family of `transformers` that can express a model.
#pragma once

#include "plumb/base/json.h"
#include "plumb/model/config.h"

namespace plumb {

/// config.json of a family in which this configuration computes the same. Throws Error, naming the settings in which
/// the closest family differs, if there is none.
Json fitting_settings(const ModelConfig& config);

/// Whether both configurations compute the same from the same weights: they may differ in initialization, dropout, in
/// keys that their kind of model does not read, and in how a value is written, such as 0 for a default.
bool compute_the_same(const ModelConfig& one, const ModelConfig& other);

}  // namespace plumb
