// The mask in one kernel, compiled at run time: each thread draws the eight elements of one counter.
#include "plumb/ops/implementations.h"

#ifdef PLUMB_GPU_BUILT
#include <ATen/cuda/jiterator.h>

#include <cmath>
#include <string>


namespace plumb::ops::gpu {
namespace {

/// The same function as reference::philox_words: eight bytes, each 1 if 16 random bits are below `keep_below`.
const char* const kKeptBytes = R"(
template <typename T> T kept_bytes(T counter, T seed, T stream, T keep_below) {
  unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)((unsigned long long)counter >> 32);
  unsigned int c2 = (unsigned int)stream, c3 = (unsigned int)((unsigned long long)stream >> 32);
  unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)((unsigned long long)seed >> 32);
  for (int round = 0; round < 10; ++round) {
    unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
    c2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned int)p1;
    c3 = (unsigned int)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
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

/// The mask of kept elements, of the shape of x.
Tensor kept(const Tensor& x, int64_t keep_below, const DropoutKey& key) {
  const at::NoGradGuard no_graph;
  static const std::string code = kKeptBytes, name = "kept_bytes";
  const auto bits = [](uint64_t word) { return at::Scalar(static_cast<int64_t>(word)); };
  const Tensor bytes =
      at::cuda::CompileAndLaunchKernel(code, name, 1, {reference::dropout_counters(x, key)},
                                       {bits(key.seed), bits(key.stream), at::Scalar(keep_below)}, false)[0];
  return bytes.view(at::kBool).narrow(0, 0, x.numel()).view(x.sizes());
}

}  // namespace

Tensor add_dropout(const Tensor& residual, const Tensor& x, double p, const DropoutKey& key) {
  const auto keep_below = std::lround((1.0 - p) * 65536.0);
  const double scale = keep_below == 0 ? 0.0 : 65536.0 / static_cast<double>(keep_below);
  // 0 in a dropped place, also if x is NaN or ∞ there, which a product with the mask would keep.
  const Tensor scaled = at::where(kept(x, keep_below, key), scale * x, at::zeros({}, x.options()));
  return residual.defined() ? residual + scaled : scaled;
}

}  // namespace plumb::ops::gpu
#endif
