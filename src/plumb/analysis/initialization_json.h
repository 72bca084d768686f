// The measurements at initialization as JSON (docs/formats/probe.md), and those of one model, as studies store them.
#pragma once

#include "plumb/analysis/initialization.h"
#include "plumb/base/json.h"

namespace plumb {

/// "backward_gain", "first_step", "curvature": those that were measured.
Json to_json(const InitializationReport& report);

Json to_json(const BackwardGains& gains);
void from_json(const Json& json, BackwardGains& gains);
Json to_json(const FirstStep& step);
void from_json(const Json& json, FirstStep& step);
Json to_json(const CurvatureSplit& split);
void from_json(const Json& json, CurvatureSplit& split);

}  // namespace plumb
