#include <array>
#include <cmath>

#include "plumb/ops/reference/reference.h"

namespace plumb::ops::reference {
namespace {

/// The four words of philox(seed, stream, counter) (base/random.h) for each of `counters`, (n) → (n, 4), all in int64:
/// products wrap around, and a mask extracts 32 bits.
Tensor philox_words(uint64_t seed, uint64_t stream, const Tensor& counters) {
  constexpr int64_t kLow = 0xFFFFFFFF;
  const auto low = [](uint64_t x) { return static_cast<int64_t>(x & kLow); };
  Tensor c0 = counters.bitwise_and(kLow);
  Tensor c1 = counters.bitwise_right_shift(32);
  Tensor c2 = at::full_like(counters, low(stream));
  Tensor c3 = at::full_like(counters, low(stream >> 32));
  uint64_t k0 = seed, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const Tensor p0 = c0 * int64_t{0xD2511F53};
    const Tensor p1 = c2 * int64_t{0xCD9E8D57};
    c0 = p1.bitwise_right_shift(32).bitwise_xor_(c1).bitwise_xor_(low(k0)).bitwise_and_(kLow);
    c2 = p0.bitwise_right_shift(32).bitwise_xor_(c3).bitwise_xor_(low(k1)).bitwise_and_(kLow);
    c1 = p1.bitwise_and(kLow);
    c3 = p0.bitwise_and(kLow);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return at::stack({c0, c1, c2, c3}, 1);
}

/// Where x is dropped: 16 bits per position, eight positions per counter.
Tensor dropped(const Tensor& x, int64_t keep_below, const DropoutKey& key) {
  const at::NoGradGuard no_graph;
  const Tensor counters = at::arange((x.numel() + 7) / 8, x.options().dtype(at::kLong));
  const Tensor words = philox_words(key.seed, key.stream, counters);
  const Tensor bits = at::stack({words.bitwise_and(0xFFFF), words.bitwise_right_shift(16)}, 2);
  return (bits.flatten().narrow(0, 0, x.numel()) >= keep_below).view(x.sizes());
}

}  // namespace

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  const auto keep_below = std::lround((1.0 - p) * 65536.0);
  const double scale = keep_below == 0 ? 0.0 : 65536.0 / static_cast<double>(keep_below);
  const Tensor kept = (scale * x).masked_fill(dropped(x, keep_below, key), 0);
  return residual.defined() ? residual + kept : kept;
}

}  // namespace plumb::ops::reference
