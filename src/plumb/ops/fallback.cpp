#include "plumb/ops/fallback.h"

#include <mutex>

namespace plumb::ops {
namespace {

struct Notes {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Notes& notes() {
  static Notes all;
  return all;
}

std::map<std::string, int64_t> snapshot() {
  const std::scoped_lock lock(notes().mutex);
  return notes().counts;
}

}  // namespace

void note_fallback(const std::string& what) {
  const std::scoped_lock lock(notes().mutex);
  ++notes().counts[what];
}

Tensor as_contiguous(const Tensor& tensor, const char* what) {
  if (!tensor.defined() || tensor.is_contiguous()) return tensor;
  if (tensor.scalar_type() != at::kDouble) note_fallback(std::string(what) + ": copy");
  return tensor.contiguous();
}

FallbackCounter::FallbackCounter() : before_(snapshot()) {}

std::map<std::string, int64_t> FallbackCounter::counts() const {
  std::map<std::string, int64_t> since;
  for (const auto& [what, count] : snapshot()) {
    const auto before = before_.find(what);
    const int64_t grown = count - (before == before_.end() ? 0 : before->second);
    if (grown > 0) since.emplace(what, grown);
  }
  return since;
}

}  // namespace plumb::ops
