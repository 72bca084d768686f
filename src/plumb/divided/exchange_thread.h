// A thread that exchanges tensors while others compute.
#pragma once

#include <omp.h>

#include "plumb/ops/torch.h"

namespace plumb {

/// What such a thread does first: it records no graph, and takes no processors away from those that compute.
inline void begin_exchange_thread() {
  omp_set_num_threads(1);  // for this thread only
  c10::GradMode::set_enabled(false);
}

}  // namespace plumb
