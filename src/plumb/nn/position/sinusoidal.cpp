// Sinusoidal positions, Vaswani et al. 2017: feature 2i is sin(p/10000^(2i/d)), feature 2i+1 the cosine of the same
// angle.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "plumb/nn/position/position.h"

namespace plumb {
namespace {

class Sinusoidal final : public Positions {
 public:
  Sinusoidal(at::ScalarType type, int64_t d_model) : type_(type), d_model_(d_model) {}

  Tensor table(int64_t length) override {
    const std::scoped_lock lock(mutex_);  // sentences are decoded by several threads
    if (!table_.defined() || table_.size(0) < length) table_ = compute(std::max<int64_t>(length, 256));
    return table_;
  }

 private:
  [[nodiscard]] Tensor compute(int64_t length) const {
    const Tensor table = at::empty({length, d_model_}, at::kDouble);
    auto* out = table.data_ptr<double>();
    for (int64_t p = 0; p < length; ++p) {
      for (int64_t j = 0; j < d_model_; ++j) {
        const int64_t pair = j / 2;
        const double exponent = static_cast<double>(2 * pair) / static_cast<double>(d_model_);
        const double angle = static_cast<double>(p) / std::pow(10000.0, exponent);
        out[p * d_model_ + j] = j % 2 == 0 ? std::sin(angle) : std::cos(angle);
      }
    }
    return table.to(type_);
  }

  at::ScalarType type_;
  int64_t d_model_;
  std::mutex mutex_;
  Tensor table_;
};

const bool registered = positions().add(
    "sinusoidal", "feature 2i of position p is sin(p/10000^(2i/d)), feature 2i + 1 the cosine of the same angle",
    "Vaswani et al. 2017, arXiv 1706.03762",
    [](Parameters& parameters, const std::string&, const PositionShape& shape) {
      return std::make_unique<Sinusoidal>(parameters.type(), shape.d_model);
    });

}  // namespace
}  // namespace plumb
