// The norm "absolute" in a small Post-LN decoder: what it returns, and that it can be trained.
#include <plumb/base/config.h>
#include <plumb/base/error.h>
#include <plumb/data/sequences.h>
#include <plumb/model/model.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using plumb::Tensor;

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
