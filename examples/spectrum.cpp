// The spectrum of a custom loss: first of a plain function of tensors, then of a model with a criterion that Plumb does
// not have. The results are checked against known eigenvalues.
#include <plumb/analysis/curvature/function_hessian.h>
#include <plumb/analysis/curvature/spectrum.h>
#include <plumb/base/error.h>
#include <plumb/data/sequences.h>

#include <cmath>
#include <iostream>
#include <numbers>

using plumb::Tensor;

/// The energy of a chain of springs between two walls, ½·Σ (x_{i+1} − x_i)². The eigenvalues of its Hessian are
/// 4·sin²(kπ/(2n + 2)), k = 1 … n.
bool measure_a_function() {
  constexpr int64_t n = 100;
  const Tensor x = at::zeros({n}, at::kDouble).requires_grad_(true);
  const Tensor wall = at::zeros({1}, at::kDouble);
  const Tensor energy = at::diff(x, 1, 0, wall, wall).square().sum() / 2;

  plumb::SpectrumOptions options;
  options.steps = n;
  const plumb::Spectrum found = plumb::measure_spectrum(plumb::function_hessian(energy, {x}), n, at::kDouble, options);

  const double largest = 4 * std::pow(std::sin(n * std::numbers::pi / (2.0 * n + 2)), 2);
  const double smallest = 4 * std::pow(std::sin(std::numbers::pi / (2.0 * n + 2)), 2);
  std::cout << "chain: " << found.min.value << " to " << found.max.value << ", expected " << smallest << " to "
            << largest << '\n';
  return std::abs(found.max.value - largest) < 1e-8 && std::abs(found.min.value - smallest) < 1e-8;
}

constexpr double kStrength = 0.5;

/// Cross-entropy plus ½·strength·‖θ‖². A batch may be one of several; its loss is then its share of their mean.
plumb::Loss regularized(plumb::Model& model, const plumb::Batch& batch, const plumb::LossOptions& options,
                        plumb::ForwardContext& context) {
  plumb::Loss loss = model.loss(batch, options, context);
  Tensor squares = at::zeros({}, at::kDouble);
  for (const Tensor& parameter : model.parameters().values()) squares = squares + parameter.square().sum();
  const double share = options.scale ? *options.scale * batch.weight() : 1;
  loss.value = loss.value + share * kStrength / 2 * squares;
  return loss;
}

/// The penalty increases every eigenvalue of a model's Hessian by its strength.
bool measure_a_model() {
  plumb::ModelConfig config;
  config.d_model = 16;
  config.feed_forward = 32;
  config.encoder_layers = config.decoder_layers = 1;
  config.source_vocabulary = config.target_vocabulary = 40;
  const auto model = plumb::make_model(config, at::kDouble);
  model->initialize(1);
  plumb::Batch batch;
  plumb::append_pair(batch, std::vector<int32_t>{5, 6, 7}, {}, std::vector<int32_t>{8, 9}, {}, 0);

  plumb::SpectrumOptions options;
  options.steps = 60;
  const double plain = plumb::measure_spectrum(*model, {batch}, options).whole->max.value;
  options.hessian.loss = regularized;
  const double shifted = plumb::measure_spectrum(*model, {batch}, options).whole->max.value;
  std::cout << "largest eigenvalue of a model: " << plain << ", with the penalty " << shifted << '\n';
  return std::abs(shifted - plain - kStrength) < 1e-6;
}

int main() try { return measure_a_function() && measure_a_model() ? 0 : 1; } catch (const plumb::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
