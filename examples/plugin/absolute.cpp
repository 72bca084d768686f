// The norm "absolute", in a library that every command of Plumb can load.
#include <plumb/nn/norm/norm.h>

using plumb::Tensor;

namespace {

/// y = x/(mean(|x|) + eps)·γ over the features of a token: RMSNorm with the mean of magnitudes instead of squares.
class AbsoluteNorm final : public plumb::Norm {
 public:
  AbsoluteNorm(plumb::Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gamma_(parameters.add(prefix + ".weight", {width}, plumb::Role::gain)), eps_(eps) {}

  Tensor operator()(const Tensor& x, const plumb::ForwardContext&) const override {
    return x / (x.abs().mean(1, /*keepdim=*/true) + eps_) * gamma_;
  }

 private:
  Tensor gamma_;  // (width)
  double eps_;
};

const bool registered =
    plumb::norms().add("absolute", "y = x/(mean(|x|) + eps)·γ", "a plug-in", plumb::makes<AbsoluteNorm>);

}  // namespace
