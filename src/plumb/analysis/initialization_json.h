// The measurements at initialization as JSON: docs/formats/probe.md.
#pragma once

#include "plumb/analysis/initialization.h"
#include "plumb/base/json.h"

namespace plumb {

/// "backward_gain", "first_step", "curvature": those that were measured.
Json to_json(const InitializationReport& report);

}  // namespace plumb
