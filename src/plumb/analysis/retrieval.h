// The number of associations that an attention can store: keys are written with values, then the values are retrieved
// by key. After Schlag et al. 2021, arXiv 2102.11174, sections 6.1 and 6.2.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/nn/attention/attention.h"

namespace plumb {

struct RetrievalTask {
  int64_t keys = 16;
  int64_t size = 16;       // of keys and values, with one head
  bool update = false;     // each key is written again with another value, the one to retrieve
  int64_t steps = 300;     // training steps for the keys (and the attention's parameters) with Adam
  int64_t sequences = 16;  // per batch
};

struct Retrieval {
  double error = 0;     // mean ‖y − v‖²/‖v‖² over the keys of fresh sequences
  double accuracy = 0;  // fraction of keys for which v is the value closest to y among all values
};

/// The key vectors are trained for the task, so that the result reflects the attention's capacity rather than chance.
/// The values are fixed random vectors, one per key; the assignment of values to keys and the order of writing are
/// drawn for each sequence.
Retrieval measure_retrieval(const std::string& kind, const VariantOptions& options, const RetrievalTask& task,
                            uint64_t seed);

}  // namespace plumb
