// BatchNorm, Ioffe & Szegedy 2015, arXiv 1502.03167:  y = (x − μ)/√(σ² + eps)·γ + β for each feature, μ and σ² over all
// tokens of the batch. An activation holds real tokens only, so no padding enters a statistic. Every process's tokens
// count where a batch is spread over several. Running averages, r ← 0.9·r + 0.1·(μ or the unbiased σ²) a training step,
// take the place of μ and σ² in evaluation.
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
    if (context.pass() == Pass::evaluation) return normalised(x - running_mean_, running_variance_);
    // Two exchanges, since the variance about the true mean keeps its digits where Σx² − nμ² loses them.
    const Tensor count = at::full({1}, static_cast<double>(x.size(0)), x.options());
    const Tensor sums = context.sum_over_processes(at::cat({x.sum(0), count}));
    const Tensor tokens = sums.narrow(0, x.size(1), 1).detach();
    const Tensor mean = sums.narrow(0, 0, x.size(1)) / tokens;
    const Tensor centred = x - mean;
    const Tensor squares = context.sum_over_processes(centred.square().sum(0));
    if (context.pass() == Pass::training) update(mean, squares / (tokens - 1).clamp_min(1));
    return normalised(centred, squares / tokens);
  }

 private:
  [[nodiscard]] Tensor normalised(const Tensor& centred, const Tensor& variance) const {
    return centred * (variance + eps_).rsqrt() * gamma_ + beta_;
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

const bool registered = norms().add(
    "batchnorm",
    "y = (x − μ)/√(σ² + eps)·γ + β for each feature, μ and σ² over the tokens of the batch; in evaluation and decoding "
    "their running averages",
    "Ioffe & Szegedy 2015, arXiv 1502.03167",
    [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
      return std::make_unique<BatchNorm>(parameters, prefix, width, eps);
    });

}  // namespace
}  // namespace plumb
