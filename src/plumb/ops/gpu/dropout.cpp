// The mask in one kernel, compiled at run time: each thread draws the eight elements of one counter.
#include "plumb/ops/implementations.h"

#ifdef PLUMB_GPU_BUILT
#include <ATen/cuda/jiterator.h>

#include <string>

#include "plumb/base/random.h"

namespace plumb::ops::gpu {
namespace {

/// The same function as reference::philox_words: eight bytes, each 1 if 16 random bits are below `keep_below`. kRounds,
/// kFactor0 and the like stand for Philox's constants.
const char* const kKeptBytes = R"(
template <typename T> T kept_bytes(T counter, T seed, T stream, T keep_below) {
  unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)((unsigned long long)counter >> 32);
  unsigned int c2 = (unsigned int)stream, c3 = (unsigned int)((unsigned long long)stream >> 32);
  unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)((unsigned long long)seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    unsigned long long p0 = kFactor0 * c0, p1 = kFactor1 * c2;
    c0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
    c2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned int)p1;
    c3 = (unsigned int)p0;
    k0 += kStep0;
    k1 += kStep1;
  }
  unsigned int words[4] = {c0, c1, c2, c3};
  unsigned long long kept = 0;
  for (int i = 0; i < 4; ++i) {
    if ((T)(words[i] & 0xFFFFu) < keep_below) kept |= 1ull << (16 * i);
    if ((T)(words[i] >> 16) < keep_below) kept |= 1ull << (16 * i + 8);
  }
  return (T)kept;
}
)";

/// kKeptBytes with the constants.
std::string source() {
  const std::pair<const char*, std::string> constants[] = {{"kFactor0", std::to_string(kPhiloxFactors[0]) + "ull"},
                                                           {"kFactor1", std::to_string(kPhiloxFactors[1]) + "ull"},
                                                           {"kStep0", std::to_string(kPhiloxKeySteps[0]) + "u"},
                                                           {"kStep1", std::to_string(kPhiloxKeySteps[1]) + "u"},
                                                           {"kRounds", std::to_string(kPhiloxRounds)}};
  std::string code = kKeptBytes;
  for (const auto& [name, value] : constants) code.replace(code.find(name), std::string_view(name).size(), value);
  return code;
}

/// The mask of kept elements, of the shape of x.
Tensor kept(const Tensor& x, int64_t keep_below, const DropoutKey& key) {
  const at::NoGradGuard no_graph;
  static const std::string code = source(), name = "kept_bytes";
  const auto bits = [](uint64_t word) { return at::Scalar(static_cast<int64_t>(word)); };
  const Tensor bytes =
      at::cuda::CompileAndLaunchKernel(code, name, 1, {reference::dropout_counters(x, key)},
                                       {bits(key.seed), bits(key.stream), at::Scalar(keep_below)}, false)[0];
  return bytes.view(at::kBool).narrow(0, 0, x.numel()).view(x.sizes());
}

}  // namespace

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  const KeptShare share = kept_share(p);
  // 0 in a dropped place, also if x is NaN or ∞ there, which a product with the mask would keep.
  const Tensor scaled = at::where(kept(x, share.below, key), share.scale * x, at::zeros({}, x.options()));
  return residual.defined() ? residual + scaled : scaled;
}

}  // namespace plumb::ops::gpu
#endif
