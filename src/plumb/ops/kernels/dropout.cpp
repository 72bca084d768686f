#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/dropout.cpp"
#include "plumb/ops/kernels/dropout.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include <hwy/highway.h>

#include <algorithm>

#include "plumb/ops/kernels/element_types.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

constexpr int kBlocks = 16;          // Philox blocks computed side by side, one per lane
constexpr int kChunk = kBlocks * 8;  // elements that they cover

/// Whether each position in [first, first + kChunk) is kept, as 0 or 1; `first` is a multiple of 8.
HWY_INLINE void decide(const DropoutMask& mask, uint64_t first, uint8_t* HWY_RESTRICT kept) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t counter = first / 8 + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(counter);
    c1[i] = static_cast<uint32_t>(counter >> 32);
    c2[i] = static_cast<uint32_t>(mask.stream);
    c3[i] = static_cast<uint32_t>(mask.stream >> 32);
  }
  auto k0 = static_cast<uint32_t>(mask.seed);
  auto k1 = static_cast<uint32_t>(mask.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) {  // vectorized by the compiler
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c2[i];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(p1);
      c3[i] = static_cast<uint32_t>(p0);
      c0[i] = n0;
      c2[i] = n2;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int i = 0; i < kBlocks; ++i) {
    const uint32_t words[4] = {c0[i], c1[i], c2[i], c3[i]};
    for (int j = 0; j < 4; ++j) {
      kept[8 * i + 2 * j] = static_cast<uint8_t>((words[j] & 0xFFFF) < mask.keep_below);
      kept[8 * i + 2 * j + 1] = static_cast<uint8_t>((words[j] >> 16) < mask.keep_below);
    }
  }
}

template <typename T>
void dropout_range(const DropoutMask& mask, T scale, const T* residual, const T* x, T* out, int64_t begin,
                   int64_t end) {
  uint8_t decided[kChunk];
  for (int64_t i = begin; i < end;) {
    const auto position = static_cast<uint64_t>(mask.first + i);
    const uint64_t skipped = position % 8;  // 0 from the second chunk on
    decide(mask, position - skipped, decided);
    const uint8_t* HWY_RESTRICT kept = decided + skipped;
    const int64_t count = std::min<int64_t>(kChunk - static_cast<int64_t>(skipped), end - i);
    if (residual != nullptr) {
      for (int64_t j = 0; j < count; ++j) out[i + j] = residual[i + j] + (kept[j] != 0 ? scale * x[i + j] : T{0});
    } else {
      for (int64_t j = 0; j < count; ++j) out[i + j] = kept[j] != 0 ? scale * x[i + j] : T{0};
    }
    i += count;
  }
}

PLUMB_KERNEL_TYPES(dropout_range);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TYPES(dropout_range);

void dropout(const DropoutMask& mask, float scale, const float* residual, const float* x, float* out, int64_t begin,
             int64_t end) {
  HWY_DYNAMIC_DISPATCH(dropout_range_f32)(mask, scale, residual, x, out, begin, end);
}
void dropout(const DropoutMask& mask, double scale, const double* residual, const double* x, double* out, int64_t begin,
             int64_t end) {
  HWY_DYNAMIC_DISPATCH(dropout_range_f64)(mask, scale, residual, x, out, begin, end);
}

}  // namespace plumb::kernels
#endif  // HWY_ONCE
