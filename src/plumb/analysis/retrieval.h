// How many associations an attention holds: keys with values are written, then values are asked for by their keys.
// After Schlag et al. 2021, arXiv 2102.11174, sections 6.1 and 6.2.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/nn/attention/attention.h"

namespace plumb {

struct RetrievalTask {
  int64_t keys = 16;
  int64_t size = 16;       // of keys and of values; one head
  bool update = false;     // each key is written a second time, with another value, which is the one asked for
  int64_t steps = 300;     // of training the keys (and what parameters the attention has) by Adam
  int64_t sequences = 16;  // a batch
};

struct Retrieval {
  double error = 0;     // mean ‖y − v‖²/‖v‖² over the keys of fresh sequences
  double accuracy = 0;  // how often v is the value nearest to y, of all there are
};

/// The key vectors are trained for the task, so that what is measured is what the kind can hold, not luck. The values
/// are as many fixed random vectors as there are keys; which key has which, and the order of writing, are drawn anew
/// for every sequence.
Retrieval measure_retrieval(const std::string& kind, const VariantOptions& options, const RetrievalTask& task,
                            uint64_t seed);

}  // namespace plumb
