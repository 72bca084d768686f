// The document "plumb.spectrum/1": docs/formats/probe.md.
#pragma once

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/base/json.h"

namespace plumb {

Json to_json(const SpectrumReport& report);

/// Reads the output of to_json; null numbers become NaN.
void from_json(const Json& json, SpectrumReport& report);

}  // namespace plumb
