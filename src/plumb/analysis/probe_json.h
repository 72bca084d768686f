// The document "plumb.probe/1": docs/formats/probe.md.
#pragma once

#include "plumb/analysis/probe.h"
#include "plumb/base/json.h"

namespace plumb {

Json to_json(const ProbeReport& report);

}  // namespace plumb
