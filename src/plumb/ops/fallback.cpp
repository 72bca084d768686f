#include "plumb/ops/fallback.h"

#include <ATen/record_function.h>

namespace plumb::ops {

void note_fallback(const std::string& what) { RECORD_USER_SCOPE(kFallback + what); }

Tensor as_contiguous(const Tensor& tensor, const char* what) {
  if (!tensor.defined() || tensor.is_contiguous()) return tensor;
  if (tensor.scalar_type() != at::kDouble) note_fallback(std::string(what) + ": copy");
  return tensor.contiguous();
}

}  // namespace plumb::ops
