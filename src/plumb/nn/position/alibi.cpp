// ALiBi, Press et al. 2021, "Train short, test long", arXiv 2108.12409: scores decrease with the distance between key
// and query, with a different slope in each head:
//   score(i, j) = q_i·k_j/√size − m_h·|i − j|,  m_h = 2^(−8h/heads), h = 1 … heads.
// If the number of heads is not a power of two, the slopes are those for the next smaller power n, followed by every
// other slope for 2n. An encoder applies the same slopes in both directions.
#include <cmath>
#include <vector>

#include "plumb/nn/position/position.h"
#include "plumb/ops/index.h"

namespace plumb {
namespace {

std::vector<double> slopes(int64_t heads) {
  const auto of_power = [](int64_t n) {
    std::vector<double> all;
    for (int64_t h = 1; h <= n; ++h) all.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(n)));
    return all;
  };
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> all = of_power(power);
  const std::vector<double> finer = of_power(2 * power);
  for (size_t i = 0; static_cast<int64_t>(all.size()) < heads; i += 2) all.push_back(finer[i]);
  return all;
}

class DistancePenalty final : public RelativePositions {
 public:
  explicit DistancePenalty(int64_t heads) : slopes_(slopes(heads)), own_(slopes_) {}

  bool biased() const override { return true; }
  [[nodiscard]] bool divisible() const override { return true; }
  void divide(LayerDivision& division) override {
    const int64_t count = division.per_rank(std::ssize(slopes_));
    const auto first = slopes_.begin() + division.group().rank() * count;
    own_.assign(first, first + count);
  }
  Tensor bias(const Tensor& query, const Tensor& key, int64_t begin) const override {
    const at::TensorOptions exact = query.options().dtype(at::kDouble);
    const Tensor from = at::arange(begin, begin + query.size(1), exact).unsqueeze(1);
    const Tensor to = at::arange(key.size(1), exact);
    const Tensor slopes = ops::values_beside(to, own_).view({-1, 1, 1});
    return (-slopes * (from - to).abs()).to(query.scalar_type());
  }

 private:
  std::vector<double> slopes_;  // (heads)
  std::vector<double> own_;     // those of the heads that are computed
};

const bool kAlibiRegistered = positions().add(
    "alibi",
    "score − 2^(−8h/heads)·abs(i − j); for numbers of heads that are not a power of two, as in the paper's code",
    "Press et al. 2021, arXiv 2108.12409",
    [](Parameters&, const std::string&, const PositionShape& shape, const Options&) {
      return std::make_unique<Positions>(std::make_shared<DistancePenalty>(shape.heads));
    });

}  // namespace
}  // namespace plumb
