// Dynamic tanh, Zhu et al. 2025, arXiv 2503.10622: y = tanh(α·x)∘γ + β, with a trained scalar α, initially 0.5. It
// computes no statistics.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

class DynamicTanh final : public Norm {
 public:
  DynamicTanh(Parameters& parameters, const std::string& prefix, int64_t width)
      : alpha_(parameters.add_constant(prefix + ".alpha", {1}, 0.5)),
        gamma_(parameters.add(prefix + ".weight", {width}, Role::gain)),
        beta_(parameters.add(prefix + ".bias", {width}, Role::shift)) {}

  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override {
    return at::tanh(alpha_ * x) * gamma_ + beta_;
  }

 private:
  Tensor alpha_;  // (1)
  Tensor gamma_;  // (width)
  Tensor beta_;   // (width)
};

const bool kDynamicTanhRegistered = norms().add(
    "dynamic-tanh", "y = tanh(α·x)·γ + β, α a trained scalar, initially 0.5", "Zhu et al. 2025, arXiv 2503.10622",
    [](Parameters& parameters, const std::string& prefix, int64_t width, double) {
      return std::make_unique<DynamicTanh>(parameters, prefix, width);
    });

}  // namespace
}  // namespace plumb
