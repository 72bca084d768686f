// Compares optimizers with PyTorch's, over ten steps in float64; see tests/golden/README.md for the origin of the
// values.
#include <gtest/gtest.h>

#include <algorithm>

#include "plumb/base/json.h"
#include "plumb/optim/optimizer.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// The part of [train] with the optimizer and its options.
struct Section {
  std::string optimizer;
  VariantOptions options;
};
void describe(Fields& field, Section& section) {
  describe_options(field, optimizers(), section.optimizer, section.options);
}

Tensor tensor(const Json& values, const Json& shape) {
  return at::tensor(at::ArrayRef<double>(values.get<std::vector<double>>()), at::kDouble)
      .view(shape.get<std::vector<int64_t>>());
}

TEST(GoldenOptimizers, FollowPyTorch) {
  const Json golden = read_json(test::source_directory() / "tests" / "golden" / "optimizers.json");
  const auto compared = golden["compared"].get<std::vector<size_t>>();
  ASSERT_EQ(compared.back(), golden["rates"].size());
  for (const Json& made : golden["cases"]) {
    SCOPED_TRACE(made["name"].get<std::string>());
    Parameters parameters(at::kDouble);
    for (const auto& [name, shape] : golden["shapes"].items())
      parameters.add(name, shape.get<std::vector<int64_t>>(), shape.size() == 2 ? Role::weight : Role::bias);
    parameters.allocate();
    for (const Parameter& parameter : parameters.all()) {
      const at::NoGradGuard no_graph;
      parameter.value.copy_(tensor(golden["weights"][parameter.name], golden["shapes"][parameter.name]));
    }

    Section section{made["optimizer"], {}};
    Config::from_string(made["config"].get<std::string>(), "golden").read("train", section);
    const auto optimizer = make_optimizer(section.optimizer, parameters, section.options);
    for (size_t step = 0; step < golden["rates"].size(); ++step) {
      std::vector<Tensor> gradients;
      for (const Parameter& parameter : parameters.all())
        gradients.push_back(tensor(golden["gradients"][step][parameter.name], golden["shapes"][parameter.name]));
      const std::vector<ParameterStep> settings(
          gradients.size(), {.learning_rate = golden["rates"][step], .weight_decay = made["weight_decay"]});
      optimizer->step(gradients, settings, made["gradient_scale"]);
      const auto now = std::ranges::find(compared, step + 1);
      if (now == compared.end()) continue;
      const Json& after = made["after"][static_cast<size_t>(now - compared.begin())];
      for (const Parameter& parameter : parameters.all()) {
        const Tensor expected = tensor(after[parameter.name], golden["shapes"][parameter.name]);
        EXPECT_LT((parameter.value.detach() - expected).abs().max().item<double>(), 1e-12)
            << parameter.name << " after step " << step + 1;
      }
    }
  }
}

}  // namespace
}  // namespace plumb
