// What the processes of a run have to agree on before they train together.
#pragma once

#include "plumb/base/json.h"
#include "plumb/parallel/group.h"
#include "plumb/train/config.h"

namespace plumb {

/// `fingerprint`: of the data (train/data_fingerprint.h). The version of LibTorch, every key of the configuration that
/// determines the run, and a checksum of every file of the data that is read in training. Where the data lie may differ
/// from machine to machine.
Facts facts_of(const RunConfig& config, const Json& fingerprint);

}  // namespace plumb
