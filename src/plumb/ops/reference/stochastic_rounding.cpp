#include <algorithm>

#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

void round_stochastically(const Tensor& x, const RoundingKey& key) {
  constexpr int64_t kPiece = int64_t{1} << 20;  // elements; limits the memory of the draws, which are int64
  const Tensor flat = x.detach().view({-1});
  for (int64_t first = 0; first < flat.numel(); first += kPiece) {
    const Tensor piece = flat.narrow(0, first, std::min(kPiece, flat.numel() - first));
    const auto integers = piece.options().dtype(at::kLong);
    const Tensor counters = at::arange(first / 8, (first + piece.numel() + 7) / 8, integers);
    const Tensor words = philox_words(key.seed, key.stream, counters);
    const Tensor draws = at::stack({words.bitwise_and(0xFFFF), words.bitwise_right_shift(16)}, 2).flatten();
    const Tensor bits = piece.view(at::kInt) + draws.narrow(0, 0, piece.numel()).to(at::kInt);
    const Tensor rounded = bits.bitwise_and_(-65536).view(at::kFloat);
    piece.copy_(at::where(piece.isnan(), piece, rounded));
  }
}

}  // namespace plumb::ops::reference
