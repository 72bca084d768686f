// Comparison of a model with values of another implementation (tests/golden/README.md).
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plumb/base/json.h"
#include "plumb/model/model.h"

namespace plumb::test {

/// Compares the loss of a batch, per label, and the norm of every parameter's gradient with `golden`, to 1e-10, for
/// losses that are differentiated once and twice.
inline void expect_golden_loss_and_gradients(Model& model, const Batch& batch, const Json& golden) {
  const double expected = golden["loss"];
  ForwardContext context;
  for (const bool twice : {false, true}) {
    LossOptions options;
    options.twice_differentiable = twice;
    const Loss loss = model.loss(batch, options, context);
    EXPECT_NEAR(loss.value.item<double>(), expected, 1e-10 * expected);
    EXPECT_NEAR(loss.nll / loss.weight, expected, 1e-10 * expected);
    const auto gradient = gradients({loss.value}, model.parameters().values(), {});
    for (size_t i = 0; i < gradient.size(); ++i) {
      const std::string& name = model.parameters().all()[i].name;
      const double norm = golden["gradient_norm"].at(name);
      EXPECT_NEAR(gradient[i].norm().item<double>(), norm, 1e-10 * norm) << name;
    }
    EXPECT_EQ(gradient.size(), golden["gradient_norm"].size());
    const double total = golden["gradient_norm_total"];
    EXPECT_NEAR(joined(gradient).norm().item<double>(), total, 1e-10 * total);
  }
}

}  // namespace plumb::test
