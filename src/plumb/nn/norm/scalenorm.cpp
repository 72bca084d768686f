// ScaleNorm, Nguyen & Salazar 2019, arXiv 1910.05895: y = g·x/√(‖x‖² + eps), with a trained scalar g, initially √d.
// Equals RMSNorm with all gains g/√d and with eps/d.
#include <cmath>

#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

class ScaleNorm final : public Norm {
 public:
  ScaleNorm(Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gain_(parameters.add_constant(prefix + ".weight", {1}, std::sqrt(static_cast<double>(width)))),
        width_(width),
        eps_(eps) {}

  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override {
    const auto d = static_cast<double>(width_);
    return ops::rms_norm(x, (gain_ / std::sqrt(d)).expand({width_}).contiguous(), eps_ / d);
  }

 private:
  Tensor gain_;  // (1)
  int64_t width_;
  double eps_;
};

const bool kScalenormRegistered = norms().add("scalenorm", "y = g·x/√(‖x‖² + eps), g a trained scalar, initially √d",
                                              "Nguyen & Salazar 2019, arXiv 1910.05895", makes<ScaleNorm>);

}  // namespace
}  // namespace plumb
