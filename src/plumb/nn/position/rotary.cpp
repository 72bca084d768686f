// Rotary positions, Su et al. 2021, "RoFormer", arXiv 2104.09864: in the queries and keys of each head, pairs of
// features at position p are rotated by the angle p·θ_m, θ_m = theta^(−2m/size) for pair m:
//   (a, b) → (a·cos − b·sin, a·sin + b·cos),
// so that scores depend only on the distance between positions. Pair m consists of features 2m and 2m + 1
// (interleaved), or of m and m + size/2 (the "rotate half" of GPT-NeoX and Llama). An odd last feature is not rotated.
// If only the first `features` of a head are rotated (GPT-J, GPT-NeoX), they replace size in the formula.
//
// For sequences longer than in training, frequencies are lowered by a factor f:
//   linear  θ_m/f                                      (Chen et al. 2023, arXiv 2306.15595)
//   ntk     theta·f^(size/(size − 2)) replaces theta    (Peng et al. 2023, arXiv 2309.00071, section 3.1)
//   llama3  with the wavelength λ = 2π/θ_m and the training length L: θ_m where λ < L/high, θ_m/f where λ > L/low,
//           between them (1 − s)·θ_m/f + s·θ_m, s = (L/λ − low)/(high − low)       (Llama 3.1, 2024)
#include "plumb/nn/position/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "plumb/nn/position/growing_table.h"
#include "plumb/nn/position/position.h"
#include "plumb/ops/index.h"

namespace plumb {

void describe(Fields& field, RotaryOptions& options) {
  field("theta", options.theta, "base of the frequencies", above(0));
  field("interleaved", options.interleaved,
        "`true`: pairs are features 2m and 2m + 1; `false`: m and m + size/2, as in Llama");
  field("scaling", options.scaling, "frequency scaling for longer sequences",
        one_of({"none", "linear", "ntk", "llama3"}));
  field("factor", options.factor, "f of `linear`, `ntk` and `llama3`", above(0));
  field("low_frequency_factor", options.low_frequency_factor, "`llama3`: wavelengths above L/low are scaled", above(0));
  field("high_frequency_factor", options.high_frequency_factor, "`llama3`: wavelengths below L/high are not scaled",
        above(0));
  field("original_length", options.original_length, "`llama3`: L, the sequence length in training", at_least(1));
  field("features", options.features, "number of features to rotate in each head, starting from the first; 0: all",
        at_least(0));
}

namespace {

/// Checks what concerns several keys.
void validate(const RotaryOptions& options, int64_t size) {
  if (options.high_frequency_factor <= options.low_frequency_factor) {
    throw Error(fmt::format("model.rotary.high_frequency_factor = {} must be above low_frequency_factor = {}",
                            options.high_frequency_factor, options.low_frequency_factor));
  }
  if (options.features > size || options.features % 2 != 0) {
    throw Error(
        fmt::format("model.rotary.features = {} must be even, and at most the head size {}", options.features, size));
  }
}

double scaled(double frequency, const RotaryOptions& options) {
  if (options.scaling == "linear") return frequency / options.factor;
  if (options.scaling != "llama3") return frequency;
  const double low = options.low_frequency_factor;
  const double high = options.high_frequency_factor;
  const double waves = static_cast<double>(options.original_length) * frequency / (2 * std::numbers::pi);  // L/λ
  if (waves > high) return frequency;
  if (waves < low) return frequency / options.factor;
  const double s = (waves - low) / (high - low);
  return (1 - s) * frequency / options.factor + s * frequency;
}

/// θ_m of the pairs of `features` features.
std::vector<double> frequencies(const RotaryOptions& options, int64_t features) {
  const auto size = static_cast<double>(features);
  double theta = options.theta;
  if (options.scaling == "ntk" && features > 2) theta *= std::pow(options.factor, size / (size - 2));
  std::vector<double> all;
  for (int64_t m = 0; m < features / 2; ++m)
    all.push_back(scaled(std::pow(theta, -2.0 * static_cast<double>(m) / size), options));
  return all;
}

/// Cosines and sines of the angles for the positions 0 … length − 1: (length, 2, pairs).
Tensor angles(const std::vector<double>& frequencies, int64_t length) {
  const auto pairs = static_cast<int64_t>(frequencies.size());
  const Tensor angle = at::arange(length, at::kDouble).unsqueeze(1) *
                       at::tensor(at::ArrayRef<double>(frequencies), at::kDouble).view({1, pairs});
  return at::stack({angle.cos(), angle.sin()}, 1);
}

class Rotation final : public RelativePositions {
 public:
  Rotation(const RotaryOptions& options, int64_t size)
      : size_(size),
        rotating_((options.features > 0 ? options.features : size) / 2 * 2),
        interleaved_(options.interleaved),
        table_([frequencies = frequencies(options, options.features > 0 ? options.features : size)](int64_t length) {
          return angles(frequencies, length);
        }) {}

  [[nodiscard]] bool rotates() const override { return true; }

  [[nodiscard]] Angles angles_at(const std::vector<int64_t>& positions,
                                 const at::TensorOptions& options) const override {
    int64_t length = 0;
    for (const int64_t position : positions) length = std::max(length, position + 1);
    const Tensor table = table_.rows(length, options);
    const Tensor rows = table.index_select(0, ops::index_beside(table, positions));
    return {rows.narrow(1, 0, 1), rows.narrow(1, 1, 1)};
  }

  [[nodiscard]] Tensor rotated(const Tensor& x, const Angles& angles) const override {
    const int64_t tokens = x.size(0);
    const int64_t heads = x.size(1) / size_;
    const int64_t pairs = rotating_ / 2;
    const Tensor by_head = x.reshape({tokens, heads, size_});
    // `dimension` holds the two features of a pair: the last one if interleaved, else the one before it.
    const std::vector<int64_t> shape =
        interleaved_ ? std::vector<int64_t>{tokens, heads, pairs, 2} : std::vector<int64_t>{tokens, heads, 2, pairs};
    const int64_t dimension = interleaved_ ? 3 : 2;
    const Tensor both = by_head.narrow(2, 0, rotating_).reshape(shape);
    const Tensor a = both.select(dimension, 0);
    const Tensor b = both.select(dimension, 1);
    Tensor out = at::stack({a * angles.cosine - b * angles.sine, a * angles.sine + b * angles.cosine}, dimension)
                     .view({tokens, heads, rotating_});
    if (rotating_ < size_) out = at::cat({out, by_head.narrow(2, rotating_, size_ - rotating_)}, 2);
    return out.reshape({tokens, heads * size_});
  }

 private:
  int64_t size_;
  int64_t rotating_;  // features per head
  bool interleaved_;
  GrowingTable table_;
};

const bool kRotaryRegistered = positions().add(
    "rotary", "features (2m, 2m + 1) of each head's query and key are rotated by the angle p·theta^(−2m/size)",
    "Su et al. 2021, arXiv 2104.09864",
    [](Parameters&, const std::string&, const PositionShape& shape, const Options& options) {
      const auto& own = options.as<RotaryOptions>();
      validate(own, shape.size());
      return std::make_unique<Positions>(std::make_shared<Rotation>(own, shape.size()));
    },
    Options(RotaryOptions()));

}  // namespace
}  // namespace plumb
