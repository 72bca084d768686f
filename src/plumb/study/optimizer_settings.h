// An optimizer with its options, for the settings of a measurement.
#pragma once

#include <string>

#include "plumb/base/json.h"
#include "plumb/base/options.h"

namespace plumb {

/// The optimizer's name and options, and options of other optimizers that differ from their defaults, as TOML.
Json settings_of_optimizer(const std::string& optimizer, const VariantOptions& options);

}  // namespace plumb
