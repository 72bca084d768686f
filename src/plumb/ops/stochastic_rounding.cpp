#include "plumb/ops/stochastic_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/parallel.h"
#include "plumb/base/random.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

constexpr int64_t kPerCounter = 8;  // 16-bit draws per Philox counter

/// Rounds the elements [begin, end), where begin is a multiple of kPerCounter.
void round_range(float* x, int64_t begin, int64_t end, const RoundingKey& key) {
  for (int64_t first = begin; first < end; first += kPerCounter) {
    const std::array<uint32_t, 4> words = philox(key.seed, key.stream, static_cast<uint64_t>(first / kPerCounter));
    for (int64_t i = first; i < std::min(first + kPerCounter, end); ++i) {
      if (std::isnan(x[i])) continue;
      const uint32_t word = words[static_cast<size_t>((i - first) / 2)];
      const uint32_t draw = (i - first) % 2 == 0 ? word & 0xFFFFU : word >> 16U;
      x[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(x[i]) + draw) & 0xFFFF0000U);
    }
  }
}

}  // namespace

void round_stochastically(const Tensor& x, const RoundingKey& key) {
  if (x.scalar_type() != at::kFloat || !x.is_contiguous())
    throw Error("only contiguous float32 tensors are rounded stochastically");
  const at::NoGradGuard no_graph;
  if (!x.device().is_cpu()) return reference::round_stochastically(x, key);
  auto* values = x.data_ptr<float>();
  const int64_t counters = (x.numel() + kPerCounter - 1) / kPerCounter;
  parallel_ranges(counters, 2048, [&](int64_t begin, int64_t end) {
    round_range(values, begin * kPerCounter, std::min(end * kPerCounter, x.numel()), key);
  });
}

void round_to_nearest(const Tensor& x) {
  const at::NoGradGuard no_graph;
  x.copy_(to_bfloat16(x));
}

}  // namespace plumb::ops
