// tensor2tensor's "noam" norm: y = √d·x/√(‖x‖² + eps), without parameters. Equals RMSNorm without gains and with eps/d.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

class NoamNorm final : public Norm {
 public:
  NoamNorm(int64_t width, double eps) : eps_(eps / static_cast<double>(width)) {}

  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override {
    return ops::rms_norm(x, at::ones({x.size(1)}, x.options()), eps_);
  }

 private:
  double eps_;
};

const bool kNoamRegistered = norms().add(
    "noam", "y = √d·x/√(‖x‖² + eps)", "tensor2tensor, `layers/common_layers.py`",
    [](Parameters&, const std::string&, int64_t width, double eps) { return std::make_unique<NoamNorm>(width, eps); });

}  // namespace
}  // namespace plumb
