// BatchNorm, Ioffe & Szegedy 2015, arXiv 1502.03167: y = (x − μ)/√(σ² + eps)·γ + β for each feature, with μ and σ² over
// all tokens of the batch, including those of other processes that share it. Activations contain no padding. In
// evaluation, μ and σ² are replaced by running averages, updated in each training step as r ← 0.9·r + 0.1·(μ or the
// unbiased σ²). A single token has no σ²: it is normalized as in evaluation, and updates nothing.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

constexpr double kMomentum = 0.1;

class BatchNorm final : public Norm {
 public:
  BatchNorm(Parameters& parameters, const std::string& prefix, int64_t width, double eps)
      : gamma_(parameters.add(prefix + ".weight", {width}, Role::gain)),
        beta_(parameters.add(prefix + ".bias", {width}, Role::shift)),
        running_mean_(parameters.add_buffer(prefix + ".running_mean", {width}, 0)),
        running_variance_(parameters.add_buffer(prefix + ".running_var", {width}, 1)),
        eps_(eps) {}

  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext& context) const override {
    if (context.pass() == Pass::evaluation) return normalized(x - running_mean_, running_variance_);
    // Σ(x − c)² − n(μ − c)² loses no precision if the constant c is close to the mean; here, c is the mean of rank 0's
    // tokens.
    const Tensor c = x.detach().mean(0);
    context.group().broadcast(c);
    const Tensor shifted = x - c;
    const int64_t width = x.size(1);
    const double share = context.placeholder() ? 0 : 1;
    const Tensor count = at::full({1}, share * static_cast<double>(x.size(0)), x.options());
    const Tensor sums =
        context.group().all_reduce(at::cat({share * shifted.sum(0), share * shifted.square().sum(0), count}));
    const Tensor tokens = sums.narrow(0, 2 * width, 1).detach();
    if ((x.size(0) <= 1 || context.placeholder()) && tokens.item<double>() <= 1)
      return normalized(x - running_mean_, running_variance_);
    const Tensor offset = sums.narrow(0, 0, width) / tokens;
    const Tensor variance = (sums.narrow(0, width, width) / tokens - offset.square()).clamp_min(0);
    if (context.pass() == Pass::training) update(c + offset, variance * (tokens / (tokens - 1).clamp_min(1)));
    return normalized(shifted - offset, variance);
  }

 private:
  [[nodiscard]] Tensor normalized(const Tensor& centered, const Tensor& variance) const {
    return centered * (variance + eps_).rsqrt() * gamma_ + beta_;
  }

  void update(const Tensor& mean, const Tensor& variance) const {
    const at::NoGradGuard no_graph;
    running_mean_.lerp_(mean.detach(), kMomentum);
    running_variance_.lerp_(variance.detach(), kMomentum);
  }

  Tensor gamma_;             // (width)
  Tensor beta_;              // (width)
  Tensor running_mean_;      // (width)
  Tensor running_variance_;  // (width)
  double eps_;
};

const bool kBatchnormRegistered = norms().add(
    "batchnorm",
    "y = (x − μ)/√(σ² + eps)·γ + β for each feature, μ and σ² over the tokens of the batch; running averages in "
    "evaluation and decoding",
    "Ioffe & Szegedy 2015, arXiv 1502.03167", makes<BatchNorm>);

}  // namespace
}  // namespace plumb
