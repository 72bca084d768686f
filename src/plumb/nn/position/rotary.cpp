// Rotary positions, Su et al. 2021, "RoFormer", arXiv 2104.09864: in queries and keys of every head, features 2i and
// 2i + 1 at position p are turned by the angle p·10000^(−2i/size):
//   (a, b) → (a·cos − b·sin, a·sin + b·cos),
// so that their scores depend on the distance of positions alone. An odd last feature stays as it is.
#include <algorithm>
#include <cmath>

#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

class Rotation final : public RelativePositions {
 public:
  explicit Rotation(int64_t heads) : heads_(heads) {}

  Tensor turn(const Tensor& x, const std::vector<int64_t>& positions) const override {
    const int64_t size = x.size(1) / heads_;
    const int64_t pairs = size / 2;
    const auto tokens = static_cast<int64_t>(positions.size());
    const Tensor angles = at::empty({tokens, 1, pairs}, at::kDouble);
    auto* angle = angles.data_ptr<double>();
    std::vector<double> frequencies;
    for (int64_t i = 0; i < pairs; ++i)
      frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(size)));
    for (const int64_t position : positions) {
      for (const double frequency : frequencies) *angle++ = static_cast<double>(position) * frequency;
    }
    const Tensor cosine = angles.cos().to(x.options());
    const Tensor sine = angles.sin().to(x.options());
    const Tensor heads = x.reshape({tokens, heads_, size});
    const Tensor turning = heads.narrow(2, 0, 2 * pairs).reshape({tokens, heads_, pairs, 2});
    const Tensor a = turning.select(3, 0);
    const Tensor b = turning.select(3, 1);
    Tensor turned = at::stack({a * cosine - b * sine, a * sine + b * cosine}, 3).view({tokens, heads_, 2 * pairs});
    if (size % 2 == 1) turned = at::cat({turned, heads.narrow(2, size - 1, 1)}, 2);
    return turned.reshape({tokens, heads_ * size});
  }

 private:
  int64_t heads_;
};

class Rotary final : public Positions {
 public:
  explicit Rotary(int64_t heads) : rotation_(std::make_shared<Rotation>(heads)) {}
  std::shared_ptr<const RelativePositions> within(Parameters&, const std::string&) override { return rotation_; }

 private:
  std::shared_ptr<const RelativePositions> rotation_;
};

const bool registered = positions().add(
    "rotary", "features (2m, 2m + 1) of each head's query and key are turned by the angle p·10000^(−2m/size)",
    "Su et al. 2021, arXiv 2104.09864",
    [](Parameters&, const std::string&, const PositionShape& shape) { return std::make_unique<Rotary>(shape.heads); });

}  // namespace
}  // namespace plumb
