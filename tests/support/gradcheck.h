// Checks analytic gradients, first and second, against central differences in float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "plumb/base/random.h"
#include "plumb/ops/torch.h"

namespace plumb::testing {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

inline Tensor random_tensor(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
  Tensor tensor = at::empty(shape, at::kDouble);
  Random random(seed, "test");
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_ptr<double>()[i] = scale * random.normal();
  return tensor;
}

/// Compares d/dx of Σ_k weights_k·f_k(x) by automatic differentiation and by (f(x+hd) − f(x−hd))/2h, for every element
/// of every input, or along `directions` random d of length 1 of an input that has more elements.
inline void expect_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs, double tolerance = 1e-7,
                             int64_t directions = std::numeric_limits<int64_t>::max()) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const std::vector<Tensor> outputs = f(leaves);
  std::vector<Tensor> weights;
  for (size_t k = 0; k < outputs.size(); ++k) weights.push_back(random_tensor(outputs[k].sizes(), 1000 + k));
  const std::vector<Tensor> analytic = gradients(outputs, leaves, weights);
  const auto value = [&](const std::vector<Tensor>& at) {
    const std::vector<Tensor> result = f(at);
    double sum = 0;
    for (size_t k = 0; k < result.size(); ++k) sum += (result[k].detach() * weights[k]).sum().item<double>();
    return sum;
  };
  constexpr double kStep = 1e-5;
  std::vector<Tensor> moved;
  for (const Tensor& input : inputs) moved.push_back(input.detach().clone().requires_grad_(true));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor x = inputs[i].detach(), place = moved[i].detach();  // shares its memory
    const int64_t count = std::min(x.numel(), directions);
    for (int64_t j = 0; j < count; ++j) {
      Tensor direction = at::zeros(x.sizes(), x.options());
      if (count == x.numel()) {
        direction.view({-1})[j] = 1;
      } else {
        direction = random_tensor(x.sizes(), 3000 + static_cast<uint64_t>(j));
        direction /= direction.norm();
      }
      const auto value_at = [&](double step) {
        place.copy_(x + step * direction);
        return value(moved);
      };
      const double numeric = (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
      const double found = (analytic[i] * direction).sum().item<double>();
      ASSERT_NEAR(found, numeric, tolerance * (1 + std::abs(numeric))) << "input " << i << ", direction " << j;
    }
    place.copy_(x);
  }
}

/// The same for the gradient itself, as a function of the inputs and of the output weights: reverse over reverse. In
/// ten random directions, a wrong element does not go unseen, and the time of the check does not grow with the inputs.
inline void expect_second_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                    double tolerance = 1e-6) {
  std::vector<Tensor> probe;
  for (const Tensor& input : inputs) probe.push_back(input.detach().clone().requires_grad_(true));
  std::vector<Tensor> all = inputs;
  const std::vector<Tensor> outputs = f(probe);
  for (size_t k = 0; k < outputs.size(); ++k) all.push_back(random_tensor(outputs[k].sizes(), 2000 + k));
  const size_t count = inputs.size();
  const TensorFunction gradient = [&f, count](const std::vector<Tensor>& at) {
    const std::vector<Tensor> x(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
    const std::vector<Tensor> weights(at.begin() + static_cast<std::ptrdiff_t>(count), at.end());
    return gradients(f(x), x, weights, /*create_graph=*/true);
  };
  expect_gradients(gradient, all, tolerance, /*directions=*/10);
}

inline void expect_both(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  expect_gradients(f, inputs);
  expect_second_gradients(f, inputs);
}

}  // namespace plumb::testing
