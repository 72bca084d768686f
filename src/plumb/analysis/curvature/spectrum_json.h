// The document "plumb.spectrum/1": docs/formats/spectrum.md.
#pragma once

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/base/json.h"

namespace plumb {

Json to_json(const SpectrumReport& report);

/// Reads what to_json writes; a number that is null there becomes NaN.
void from_json(const Json& json, SpectrumReport& report);

}  // namespace plumb
