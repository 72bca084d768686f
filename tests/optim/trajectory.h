// Ten steps of an optimizer in float64 against an update in plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "options.h"
#include "plumb/optim/cautious.h"
#include "plumb/optim/optimizer.h"
#include "support/gradcheck.h"

namespace plumb::test {

using Numbers = std::vector<double>;

inline Numbers numbers(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// A parameter without tensors; elements in row-major order.
struct Plain {
  std::string name;
  int64_t rows = 0, columns = 0;  // a vector is one column
  bool matrix = false;
  Numbers w;
};

/// Performs one step on parameter i.
using PlainStep =
    std::function<void(size_t i, Plain& parameter, const Numbers& g, double rate, double weight_decay, int t)>;

inline double length(const Numbers& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum);
}

/// The parameters: "wide" (3, 5), "square" (4, 4), "qkv" (8, 4) of two matrices, and "vector" (7).
inline void expect_steps(const std::string& optimizer, const std::string& toml, const PlainStep& expected,
                         bool cautious = false) {
  Parameters parameters(at::kDouble);
  parameters.add("wide", {3, 5}, Role::weight);
  parameters.add("square", {4, 4}, Role::weight);
  parameters.add_stacked("qkv", {8, 4}, {4, 4}, Role::stacked_qkv);
  parameters.add("vector", {7}, Role::bias);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 7));
  std::vector<Plain> plain;
  for (const Parameter& each : parameters.all()) {
    const bool matrix = each.value.dim() == 2;
    plain.push_back({each.name, each.value.size(0), matrix ? each.value.size(1) : 1, matrix, numbers(each.value)});
  }
  auto trained = make_optimizer(optimizer, parameters, options(toml));
  if (cautious) trained = make_cautious(std::move(trained), parameters);
  for (int t = 1; t <= 10; ++t) {
    std::vector<Tensor> gradients;
    std::vector<ParameterStep> settings;
    const double scale = t % 3 == 0 ? 0.25 : 1.0;
    for (size_t i = 0; i < plain.size(); ++i) {
      gradients.push_back(
          testing::random_tensor(parameters.all()[i].value.sizes(), 100 * static_cast<uint64_t>(t) + i));
      settings.push_back(
          {.learning_rate = 0.03 / (1 + static_cast<double>(i) + 0.1 * t), .weight_decay = i % 2 == 0 ? 0.1 : 0.0});
    }
    trained->step(gradients, settings, scale);
    for (size_t i = 0; i < plain.size(); ++i) {
      const Numbers g = numbers(scale * gradients[i]);
      expected(i, plain[i], g, settings[i].learning_rate, settings[i].weight_decay, t);
      const Numbers found = numbers(parameters.all()[i].value);
      for (size_t j = 0; j < found.size(); ++j)
        ASSERT_NEAR(found[j], plain[i].w[j], 1e-12) << plain[i].name << "[" << j << "] after step " << t;
    }
  }
}

}  // namespace plumb::test
