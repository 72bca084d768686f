// A norm defined outside the library: it registers itself under a name that then works in every configuration.
#include <plumb/base/config.h>
#include <plumb/base/error.h>
#include <plumb/data/sequences.h>
#include <plumb/model/model.h>
#include <plumb/nn/norm/norm.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using plumb::Tensor;

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
    plumb::norms().add("absolute", "y = x/(mean(|x|) + eps)·γ", "examples/norm.cpp",
                       [](plumb::Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
                         return std::make_unique<AbsoluteNorm>(parameters, prefix, width, eps);
                       });

int main() try {
  auto file =
      plumb::Config::from_string("[model]\nkind = \"decoder\"\nresidual = \"post-ln\"\nd_model = 32\n", "model");
  file.set("model.norm=absolute");  // as `--set` does
  plumb::ModelConfig config;
  file.read("model", config);
  config.target_vocabulary = 100;
  const auto model = plumb::make_model(config);
  model->initialize(1);

  plumb::Batch batch;
  plumb::append_sentence(batch, std::vector<int32_t>{11, 22, 33, 44}, {}, 0);

  // In Post-LN every layer ends with the norm, and all gains are 1 now, so mean(|x|) is 1 for every token.
  double worst = 0;
  int layers = 0;
  plumb::ForwardContext context;
  context.watch([&](const plumb::ActivationPoint& at, const Tensor& x) {
    if (at.point != plumb::Point::stream) return;
    worst = std::max(worst, (x.abs().mean(1) - 1).abs().max().item<double>());
    ++layers;
  });
  const plumb::Loss loss = model->loss(batch, {}, context);

  // A composition of LibTorch operations is differentiable.
  const std::vector<Tensor> gradient = plumb::gradients({loss.value}, model->parameters().values(), {});
  double norm = 0;
  for (const Tensor& piece : gradient) norm = std::hypot(norm, piece.norm().item<double>());
  std::cout << layers << " sub-layers, |mean(|x|) − 1| at most " << worst << ", gradient " << norm << '\n';
  return layers == 8 && worst < 1e-3 && std::isfinite(norm) && norm > 0 ? 0 : 1;
} catch (const plumb::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
