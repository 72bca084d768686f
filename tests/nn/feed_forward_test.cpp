// The kinds of feed-forward sub-layers against their formulas, and their gradients against finite differences.
#include "plumb/nn/feed_forward/feed_forward.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "support/contains.h"
#include "support/gradcheck.h"

namespace plumb::feed_forward_test {
namespace {

using testing::random_tensor;

constexpr int64_t kWidth = 3;
constexpr int64_t kInner = 5;

struct Fixture {
  Parameters parameters{at::kDouble};
  std::unique_ptr<FeedForward> layer;

  Fixture(const std::string& kind, bool bias) {
    layer = feed_forwards().at(kind).make(parameters, {"layer", kWidth, kInner, bias});
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 3));
  }
  /// Row i of NAME.weight times x, plus its bias.
  [[nodiscard]] double product(const std::string& name, int64_t i, const std::vector<double>& x) const {
    const Tensor weight = parameters.at("layer." + name + ".weight").value.detach();
    const Parameter* bias = parameters.find("layer." + name + ".bias");
    double sum = bias == nullptr ? 0 : bias->value.detach()[i].item<double>();
    for (size_t j = 0; j < x.size(); ++j) sum += weight[i][static_cast<int64_t>(j)].item<double>() * x[j];
    return sum;
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

struct Kind {
  const char* name;
  bool gated;
  double (*activation)(double);
};
const std::vector<Kind> kKinds = {
    {"relu", false, [](double x) { return std::max(x, 0.0); }},
    {"gelu", false, gelu},
    {"gelu-tanh", false, gelu_by_tanh},
    {"silu", false, [](double x) { return x * sigmoid(x); }},
    {"swiglu", true, [](double x) { return x * sigmoid(x); }},
    {"geglu", true, gelu},
    {"geglu-tanh", true, gelu_by_tanh},
};

TEST(FeedForward, EveryKindIsItsFormula) {
  ASSERT_EQ(feed_forwards().names().size(), kKinds.size());
  const Tensor x = random_tensor({4, kWidth}, 1);
  for (const Kind& kind : kKinds) {
    for (const bool bias : {true, false}) {
      SCOPED_TRACE(fmt::format("{} bias {}", kind.name, bias));
      const Fixture fixture(kind.name, bias);
      const Tensor found = (*fixture.layer)(x);
      ASSERT_EQ(found.sizes(), at::IntArrayRef({4, kWidth}));
      for (int64_t token = 0; token < 4; ++token) {
        std::vector<double> in;
        for (int64_t j = 0; j < kWidth; ++j) in.push_back(x[token][j].item<double>());
        std::vector<double> inner;
        for (int64_t i = 0; i < kInner; ++i) {
          inner.push_back(kind.activation(fixture.product("linear1", i, in)) *
                          (kind.gated ? fixture.product("linear3", i, in) : 1));
        }
        for (int64_t i = 0; i < kWidth; ++i)
          EXPECT_NEAR(found[token][i].item<double>(), fixture.product("linear2", i, inner), 1e-13);
      }
    }
  }
}

TEST(FeedForward, ParametersHavePyTorchsNamesAndShapes) {
  for (const Kind& kind : kKinds) {
    for (const bool bias : {true, false}) {
      const Fixture fixture(kind.name, bias);
      EXPECT_EQ(fixture.parameters.all().size(), (kind.gated ? 3U : 2U) * (bias ? 2U : 1U)) << kind.name;
      EXPECT_EQ(fixture.parameters.at("layer.linear1.weight").value.sizes(), at::IntArrayRef({kInner, kWidth}));
      EXPECT_EQ(fixture.parameters.at("layer.linear2.weight").value.sizes(), at::IntArrayRef({kWidth, kInner}));
      EXPECT_EQ(fixture.parameters.at("layer.linear1.weight").role, Role::feed_forward_input);
      EXPECT_EQ(fixture.parameters.at("layer.linear2.weight").role, Role::feed_forward_output);
      if (kind.gated) {
        EXPECT_EQ(fixture.parameters.at("layer.linear3.weight").value.sizes(), at::IntArrayRef({kInner, kWidth}));
        EXPECT_EQ(fixture.parameters.at("layer.linear3.weight").role, Role::feed_forward_input);
      }
    }
  }
}

/// With W₂ the unit matrix, the output shows the inner features: each is dropped, or divided by 1 − p.
TEST(FeedForward, DropsInnerFeaturesInTraining) {
  constexpr int64_t kTokens = 400;
  constexpr double kRate = 0.25;
  const Tensor x = random_tensor({kTokens, kWidth}, 1);
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    Parameters parameters(at::kDouble);
    const auto layer = feed_forwards().at(kind.name).make(parameters, {"layer", kWidth, kWidth, false, {}, kRate});
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 3));
    parameters.at("layer.linear2.weight").value.detach().copy_(at::eye(kWidth, at::kDouble));
    const Tensor whole = (*layer)(x, ForwardContext(Pass::measurement));
    EXPECT_TRUE(at::equal(whole, (*layer)(x)));
    const Tensor found = (*layer)(x, ForwardContext(0.0, 7, 3));
    const Tensor kept = found != 0;
    EXPECT_LT((found - kept * whole / (1 - kRate)).abs().max().item<double>(), 1e-12);
    const Tensor other_step = (*layer)(x, ForwardContext(0.0, 7, 4));
    EXPECT_FALSE(at::equal(other_step != 0, kept));
    const Tensor positive = whole != 0;  // ReLU's zeros are not dropped ones
    const auto count = static_cast<double>(positive.sum().item<int64_t>());
    const auto share = static_cast<double>(kept.sum().item<int64_t>()) / count;
    EXPECT_NEAR(share, 1 - kRate, 5 * std::sqrt(kRate * (1 - kRate) / count));
  }
}

TEST(FeedForward, EveryKindHasGradientsAndSecondOnes) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const Fixture fixture(kind.name, true);
    testing::expect_both([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{(*fixture.layer)(in[0])}; },
                         {random_tensor({2, kWidth}, 1)});
  }
}

TEST(FeedForward, AnUnknownKindNamesTheNearest) {
  try {
    (void)feed_forwards().at("swigul");
    FAIL();
  } catch (const Error& error) {
    EXPECT_CONTAINS(error.hint(), "'swiglu'");
  }
}

}  // namespace
}  // namespace plumb::feed_forward_test
