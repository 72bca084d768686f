// Sinusoidal positions, Vaswani et al. 2017: feature 2i is sin(p/10000^(2i/d)), feature 2i+1 the cosine of the same
// angle.
#include <cmath>

#include "plumb/nn/position/growing_table.h"
#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

/// (length, d_model)
Tensor waves(int64_t length, int64_t d_model) {
  std::vector<double> divisors;  // one per feature
  for (int64_t j = 0; j < d_model; ++j)
    divisors.push_back(std::pow(10000.0, static_cast<double>(j / 2 * 2) / static_cast<double>(d_model)));
  Tensor table = at::empty({length, d_model}, at::kDouble);
  auto* out = table.data_ptr<double>();
  for (int64_t p = 0; p < length; ++p) {
    for (int64_t j = 0; j < d_model; ++j) {
      const double angle = static_cast<double>(p) / divisors[static_cast<size_t>(j)];
      *out++ = j % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table;
}

class Sinusoidal final : public Positions {
 public:
  Sinusoidal(at::ScalarType type, int64_t d_model)
      : type_(type), table_([d_model](int64_t length) { return waves(length, d_model); }) {}

  Tensor table(int64_t length) override { return table_.rows(length, at::TensorOptions(type_)); }

 private:
  at::ScalarType type_;
  GrowingTable table_;
};

const bool kSinusoidalRegistered = positions().add(
    "sinusoidal", "feature 2i of position p is sin(p/10000^(2i/d)), feature 2i + 1 the cosine of the same angle",
    "Vaswani et al. 2017, arXiv 1706.03762",
    [](Parameters& parameters, const std::string&, const PositionShape& shape) {
      return std::make_unique<Sinusoidal>(parameters.type(), shape.d_model);
    });

}  // namespace
}  // namespace plumb
