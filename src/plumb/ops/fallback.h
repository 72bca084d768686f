// Counts how often an operation took a slow way though its elements have a fast one, so that no fast path is lost
// unnoticed: copies into rows that kernels can read, and matrix products by LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Notes that `what` took the slow way. float64 has no other and is not noted anywhere.
void note_fallback(const std::string& what);

/// The tensor itself if it is contiguous, else a copy, noted as "WHAT: copy".
Tensor as_contiguous(const Tensor& tensor, const char* what);

/// What is noted from its making on, by all threads.
class FallbackCounter {
 public:
  FallbackCounter();
  [[nodiscard]] std::map<std::string, int64_t> counts() const;

 private:
  std::map<std::string, int64_t> before_;
};

}  // namespace plumb::ops
