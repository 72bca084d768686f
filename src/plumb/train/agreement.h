// What the processes of a run must agree on before they train together.
#pragma once

#include "plumb/base/json.h"
#include "plumb/parallel/group.h"
#include "plumb/run/config.h"

namespace plumb {

/// The version of LibTorch, every configuration key except [watch] and data.directory, the size of each corpus, and the
/// checksum of each data file that training reads. `fingerprint`: of the data (run/data_fingerprint.h).
Facts facts_of(const RunConfig& config, const Json& fingerprint);

}  // namespace plumb
