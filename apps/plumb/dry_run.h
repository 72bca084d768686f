// plumb train --dry-run: what every process of a run would hold and exchange.
#pragma once

#include "plumb/run/config.h"
#include "verb.h"

namespace plumb::app {

/// Checks the run's mesh, and prints it. Needs no data, and neither memory for the model nor other processes. Throws
/// Error if the run leaves its vocabulary to the data, or if the mesh does not fit.
void dry_run(const RunConfig& run, const Globals& globals);

}  // namespace plumb::app
