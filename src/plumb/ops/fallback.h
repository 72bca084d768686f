// Counts how often an operation took a slow path although a fast one exists, so that a lost fast path is noticed:
// copies to make tensors contiguous, and matrix products by LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Records that `what` took the slow path. Callers do not record float64.
void note_fallback(const std::string& what);

/// The tensor itself if it is contiguous or undefined, else a copy, recorded as "WHAT: copy" unless it is float64.
Tensor as_contiguous(const Tensor& tensor, const char* what);

/// The fallbacks that all threads have recorded since its construction.
class FallbackCounter {
 public:
  FallbackCounter();
  [[nodiscard]] std::map<std::string, int64_t> counts() const;

 private:
  std::map<std::string, int64_t> before_;
};

}  // namespace plumb::ops
