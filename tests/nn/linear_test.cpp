// Linear layers against sums over the elements of their matrices.
#include "plumb/nn/linear.h"

#include <gtest/gtest.h>

#include "nn/small_heads.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using test::distance;
using testing::random_tensor;

/// A layer of three parts of 2, 3 and 1 rows, which reads 4 features, with random values and rank-2 adapters of the
/// parts named in `adapted`.
struct StackedLinear {
  Parameters parameters{at::kDouble};
  Linear layer;

  explicit StackedLinear(std::vector<std::string> adapted, bool biased = true) {
    const Tensor weight = parameters.add_stacked("weight", {6, 4}, {2, 3, 1}, Role::weight);
    layer = Linear(weight, biased ? parameters.add("bias", {6}, Role::bias) : Tensor(), {2, 3, 1});
    const LoraOptions options{2, 3, std::move(adapted)};
    for (size_t part = 0; part < 3; ++part) {
      const std::string name = std::to_string(part);
      layer.adapt(parameters, options, name, name, part);
    }
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 5));
  }

  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at(name).value.detach(); }

  /// Row i of W + 3/2·B·A, summed term by term.
  [[nodiscard]] std::vector<double> row(int64_t i) const {
    std::vector<double> sums;
    const int64_t part = i < 2 ? 0 : i < 5 ? 1 : 2, first = part == 0 ? 0 : part == 1 ? 2 : 5;
    const std::string name = std::to_string(part) + "_lora.";
    for (int64_t j = 0; j < 4; ++j) {
      double sum = value("weight")[i][j].item<double>();
      for (int64_t k = 0; k < 2 && parameters.find(name + "a") != nullptr; ++k)
        sum += 1.5 * value(name + "b")[i - first][k].item<double>() * value(name + "a")[k][j].item<double>();
      sums.push_back(sum);
    }
    return sums;
  }

  /// What the layer has to return.
  [[nodiscard]] Tensor expected(const Tensor& x) const {
    Tensor y = at::empty({x.size(0), 6}, at::kDouble);
    for (int64_t t = 0; t < x.size(0); ++t) {
      for (int64_t i = 0; i < 6; ++i) {
        double sum = parameters.find("bias") == nullptr ? 0 : value("bias")[i].item<double>();
        const std::vector<double> weights = row(i);
        for (int64_t j = 0; j < 4; ++j) sum += weights[static_cast<size_t>(j)] * x[t][j].item<double>();
        y[t][i] = sum;
      }
    }
    return y;
  }
};

const std::vector<std::vector<std::string>> kAdaptedParts = {{}, {"0"}, {"1"}, {"2"}, {"0", "2"}, {"0", "1", "2"}};

TEST(LinearLayer, IsAProductWithABiasAndAdapters) {
  const Tensor x = random_tensor({3, 4}, 2);
  for (const auto& adapted : kAdaptedParts) {
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(adapted.empty() ? "none" : adapted.front());
      const StackedLinear stacked(adapted, biased);
      const Tensor expected = stacked.expected(x);
      EXPECT_EQ(stacked.parameters.all().size(), (biased ? 2 : 1) + 2 * adapted.size());
      EXPECT_LT(distance(stacked.layer(x), expected), 1e-12);
      EXPECT_LT(distance(stacked.layer(x, ops::Activation::relu), expected.clamp_min(0)), 1e-12);
    }
  }
}

TEST(LinearLayer, ComputesSomeOfItsParts) {
  const Tensor x = random_tensor({3, 4}, 2);
  const int64_t begins[] = {0, 2, 5, 6};
  for (const auto& adapted : kAdaptedParts) {
    const StackedLinear stacked(adapted);
    const Tensor expected = stacked.expected(x);
    for (size_t first = 0; first < 3; ++first) {
      for (size_t count = 1; first + count <= 3; ++count) {
        const Tensor columns = expected.narrow(1, begins[first], begins[first + count] - begins[first]);
        EXPECT_LT(distance(stacked.layer.parts(x, first, count), columns), 1e-12) << first << " " << count;
      }
    }
  }
}

TEST(LinearLayer, HasGradientsOfAllItsParameters) {
  const StackedLinear stacked({"1"});
  testing::expect_gradients(
      [&](const std::vector<Tensor>& inputs) {
        const Linear layer(inputs[1], inputs[2], {2, 3, 1});
        return std::vector<Tensor>{layer(inputs[0]), layer.parts(inputs[0], 1, 2)};
      },
      {random_tensor({3, 4}, 2), stacked.value("weight"), stacked.value("bias")});
}

TEST(LinearLayer, MayBeAbsent) {
  EXPECT_FALSE(Linear());
  Parameters parameters(at::kDouble);
  const Linear layer(parameters, "a.layer", 3, 2, Role::weight, false);
  EXPECT_TRUE(layer);
  EXPECT_FALSE(layer.bias().defined());
  EXPECT_EQ(layer.in(), 2);
  EXPECT_EQ(layer.out(), 3);
  ASSERT_EQ(parameters.all().size(), 1U);
  EXPECT_EQ(parameters.all()[0].name, "a.layer.weight");
}

}  // namespace
}  // namespace plumb
