#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plumb/ops/kernels/dropout.cpp"
#include "plumb/ops/kernels/dropout.h"

#include <hwy/foreach_target.h>
// Highway's order of includes: foreach_target.h first.
#include "plumb/base/random.h"
#include "plumb/ops/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::kernels::HWY_NAMESPACE {

constexpr int64_t kBlocks = 16;          // Philox blocks computed at once
constexpr int64_t kChunk = kBlocks * 8;  // elements that they cover

/// The halves of the 64 bits of a·b in each lane; all lanes of b are equal.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE void multiply(D d, V a, V b, V& high, V& low) {
#if HWY_TARGET == HWY_SCALAR  // one lane: no pairs
  const uint64_t product = uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  high = hn::Set(d, static_cast<uint32_t>(product >> 32));
  low = hn::Set(d, static_cast<uint32_t>(product));
#else
  const V even = hn::BitCast(d, hn::MulEven(a, b));  // pairs of low and high
  const V odd = hn::BitCast(d, hn::MulEven(hn::DupOdd(a), b));
  high = hn::OddEven(odd, hn::DupOdd(even));
  low = hn::OddEven(hn::DupEven(odd), even);
#endif
}

/// The 16 random bits of each position in [first, first + kChunk); `first` is a multiple of 8.
HWY_INLINE void draw(const DropoutMask& mask, uint64_t first, uint16_t* HWY_RESTRICT bits) {
  const hn::CappedTag<uint32_t, kBlocks> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < kBlocks; i += lanes) {
    uint32_t low[kBlocks], high[kBlocks];
    for (int64_t j = 0; j < lanes; ++j) {
      const uint64_t counter = first / 8 + static_cast<uint64_t>(i + j);
      low[j] = static_cast<uint32_t>(counter);
      high[j] = static_cast<uint32_t>(counter >> 32);
    }
    auto c0 = hn::LoadU(d, low);
    auto c1 = hn::LoadU(d, high);
    auto c2 = hn::Set(d, static_cast<uint32_t>(mask.stream));
    auto c3 = hn::Set(d, static_cast<uint32_t>(mask.stream >> 32));
    auto k0 = static_cast<uint32_t>(mask.seed);
    auto k1 = static_cast<uint32_t>(mask.seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      auto high0 = c0, low0 = c0, high1 = c0, low1 = c0;
      multiply(d, c0, hn::Set(d, kPhiloxFactors[0]), high0, low0);
      multiply(d, c2, hn::Set(d, kPhiloxFactors[1]), high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
      c1 = low1;
      c3 = low0;
      k0 += kPhiloxKeySteps[0];
      k1 += kPhiloxKeySteps[1];
    }
    // Position 8i + j has the j-th 16 bits of block i, lowest first: their order in memory on little-endian machines.
    hn::StoreInterleaved4(c0, c1, c2, c3, d, reinterpret_cast<uint32_t*>(bits + 8 * i));
  }
}

/// The bits of the next elements as unsigned integers as wide as these.
template <typename D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> widened(D /*lanes*/, const uint16_t* bits) {
  const hn::RebindToUnsigned<D> unsigned_tag;
  const hn::Rebind<uint32_t, D> middle;
  const auto narrow = hn::LoadU(hn::Rebind<uint16_t, D>(), bits);
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(uint32_t)) {
    return hn::PromoteTo(unsigned_tag, narrow);
  } else {
    return hn::PromoteTo(unsigned_tag, hn::PromoteTo(middle, narrow));
  }
}

template <typename T>
void add(const DropoutMask& mask, T scale, const T* residual, const T* x, T* out, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> d_bits;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  const auto below = hn::Set(d_bits, mask.keep_below);
  HWY_ALIGN uint16_t drawn[kChunk + kBlocks];  // of which the last vector of elements may see the end
  for (int64_t i = begin; i < end;) {
    const auto position = static_cast<uint64_t>(mask.first + i);
    const uint64_t skipped = position % 8;  // 0 from the second chunk on
    draw(mask, position - skipped, drawn);
    const uint16_t* bits = drawn + skipped;
    const int64_t count = std::min<int64_t>(kChunk - static_cast<int64_t>(skipped), end - i);
    const auto dropped = [&](int64_t j, auto value) HWY_ATTR {
      const auto kept = hn::RebindMask(d, hn::Lt(widened(d, bits + j), below));
      return hn::IfThenElseZero(kept, hn::Mul(factor, value));
    };
    int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      auto y = dropped(j, hn::LoadU(d, x + i + j));
      if (residual != nullptr) y = hn::Add(hn::LoadU(d, residual + i + j), y);
      hn::StoreU(y, d, out + i + j);
    }
    if (j < count) {
      const int64_t left = count - j;
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      auto y = dropped(j, load_first(d, mask, left, x + i + j));
      if (residual != nullptr) y = hn::Add(load_first(d, mask, left, residual + i + j), y);
      store_first(y, d, mask, left, out + i + j);
    }
    i += count;
  }
}

PLUMB_FILL_TABLE(DropoutKernels, .add = add<T>);

}  // namespace plumb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::kernels {

PLUMB_EXPORT_TABLE(DropoutKernels, dropout);

}  // namespace plumb::kernels
#endif  // HWY_ONCE
