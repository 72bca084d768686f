#include "plumb/base/random.h"
#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

Tensor philox_words(uint64_t seed, uint64_t stream, const Tensor& counters) {
  constexpr int64_t kLow = 0xFFFFFFFF;
  const auto low = [](uint64_t x) { return static_cast<int64_t>(x & kLow); };
  Tensor c0 = counters.bitwise_and(kLow);
  Tensor c1 = counters.bitwise_right_shift(32);
  Tensor c2 = at::full_like(counters, low(stream));
  Tensor c3 = at::full_like(counters, low(stream >> 32));
  uint64_t k0 = seed, k1 = seed >> 32;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Tensor p0 = c0 * int64_t{kPhiloxFactors[0]};
    const Tensor p1 = c2 * int64_t{kPhiloxFactors[1]};
    c0 = p1.bitwise_right_shift(32).bitwise_xor_(c1).bitwise_xor_(low(k0)).bitwise_and_(kLow);
    c2 = p0.bitwise_right_shift(32).bitwise_xor_(c3).bitwise_xor_(low(k1)).bitwise_and_(kLow);
    c1 = p1.bitwise_and(kLow);
    c3 = p0.bitwise_and(kLow);
    k0 += kPhiloxKeySteps[0];
    k1 += kPhiloxKeySteps[1];
  }
  return at::stack({c0, c1, c2, c3}, 1);
}

}  // namespace plumb::ops::reference
