// RMSNorm, Zhang & Sennrich 2019, arXiv 1910.07467:  y = x/√(mean(x²) + eps)·γ over the features of a token.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

class RmsNorm final : public Norm {
 public:
  RmsNorm(Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gamma_(parameters.add(prefix + ".weight", {width}, Role::gain)), eps_(eps) {}
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override {
    return ops::rms_norm(x, gamma_, eps_);
  }

 private:
  Tensor gamma_;  // (width)
  double eps_;
};

const bool kRmsnormRegistered =
    norms().add("rmsnorm", "y = x/√(mean(x²) + eps)·γ", "Zhang & Sennrich 2019, arXiv 1910.07467", makes<RmsNorm>);

}  // namespace
}  // namespace plumb
