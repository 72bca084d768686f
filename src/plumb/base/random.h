// Counter-based random numbers: a value is a function of (seed, stream, index), independent of threads and history.
// Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb {

/// Philox's constants: the factors of its two products, and what is added to the halves of the key in each round.
inline constexpr std::array<uint32_t, 2> kPhiloxFactors = {0xD2511F53, 0xCD9E8D57};
inline constexpr std::array<uint32_t, 2> kPhiloxKeySteps = {0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

/// Four random 32-bit words for a counter and a key.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                               static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxFactors[0]} * c[0];
    const uint64_t p1 = uint64_t{kPhiloxFactors[1]} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kPhiloxKeySteps[0];
    k1 += kPhiloxKeySteps[1];
  }
  return c;
}

/// Maps a name to a stream number, so that every use of randomness has its own stream (FNV-1a).
constexpr uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

/// A sequential view of one stream. Copyable; objects with equal seed and stream give equal numbers everywhere.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  Random(uint64_t seed, std::string_view stream) : Random(seed, stream_of(stream)) {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = philox(seed_, stream_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = next() >> 5;
    return static_cast<double>(high << 26 | next() >> 6) * 0x1p-53;
  }

  /// Standard normal (Box–Muller; both values of a pair are used).
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 6.283185307179586 * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

  /// Uniform integer in [0, n), n > 0 (Lemire's multiplication; bias below 2⁻³² per draw is accepted).
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next64()) * n) >> 64); }

  /// Fisher–Yates.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t next64() {
    const uint64_t high = next();
    return high << 32 | next();
  }

  uint64_t seed_;
  uint64_t stream_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace plumb
