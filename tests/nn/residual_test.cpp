// Residual schemes compared with their equations in plain tensor operations and float64.
#include "plumb/nn/residual/residual.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/nn/residual/deepnorm.h"
#include "residual_stack.h"
#include "support/gradcheck.h"
#include "support/test_names.h"

namespace plumb::residual_test {
namespace {

using residual_stack::expect_equal;
using residual_stack::kEps;
using residual_stack::kInput;
using residual_stack::kSubLayers;
using residual_stack::kWidth;
using residual_stack::Stack;
using testing::random_tensor;

TEST(Residual, PostLnAndPreLn) {
  const Stack post("post-ln", 2);
  Tensor x = kInput;
  for (int64_t i = 0; i < post.count(); ++i) x = post.norm(i, x + post.f(i, x));
  expect_equal(post.run(kInput), x);

  const Stack pre("pre-ln", 2);
  x = kInput;
  for (int64_t i = 0; i < pre.count(); ++i) x = x + pre.f(i, pre.norm(i, x));
  expect_equal(pre.run(kInput), pre.final_norm(x));
}

TEST(Residual, ResidualDual) {
  const Stack stack("residual-dual", 3);
  Tensor x = kInput;
  Tensor r = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    const Tensor y = stack.f(i, x);
    r = r + y;
    x = stack.norm(i, x + y);
  }
  expect_equal(stack.run(kInput), x + stack.final_norm(r, 1e-7));
}

TEST(Residual, Deepnorm) {
  const Stack stack("deepnorm", 3, StackKind::encoder, {3, 2});
  const double alpha = 0.81 * std::pow(3.0 * 3 * 3 * 3 * 2, 1.0 / 16);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) x = stack.norm(i, alpha * x + stack.f(i, x));
  expect_equal(stack.run(kInput), x);
}

TEST(Residual, DeepnormConstants) {
  for (const bool decoder : {false, true}) {  // one stack of 8 layers: (2N)^(1/4) = 2, (8N)^(1/4) = 64^(1/4)
    const DeepnormConstants single = deepnorm_constants(decoder ? ModelDepth{0, 8} : ModelDepth{8, 0}, decoder);
    EXPECT_NEAR(single.alpha, 2, 1e-15);
    EXPECT_NEAR(single.divisor, std::sqrt(8.0), 1e-14);
  }
  const DeepnormConstants encoder = deepnorm_constants({16, 1}, false);  // (16⁴)^(1/16) = 2
  EXPECT_NEAR(encoder.alpha, 0.81 * 2, 1e-14);
  EXPECT_NEAR(encoder.divisor, 2 / 0.87, 1e-14);                        // the paper's gain is 0.87/2
  const DeepnormConstants decoder = deepnorm_constants({5, 27}, true);  // (3·27)^(1/4) = 3
  EXPECT_NEAR(decoder.alpha, 3, 1e-14);
  EXPECT_NEAR(decoder.divisor, std::pow(324.0, 0.25), 1e-14);
}

TEST(Residual, Sandwich) {
  const Stack stack("sandwich", 2);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    x = x + stack.norm(i, stack.f(i, stack.norm(i, x)), "post_norm");
  }
  expect_equal(stack.run(kInput), stack.final_norm(x));
}

TEST(Residual, Keel) {
  const Stack stack("keel", 3);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) x = stack.norm(i, 6 * x + stack.f(i, stack.norm(i, x, "inner_norm")));
  expect_equal(stack.run(kInput), x);
}

TEST(Residual, MixLn) {
  const Stack stack("mix-ln", 5);  // ⌊5/4⌋ = 1 layer of Post-LN
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    x = i < 2 ? stack.norm(i, x + stack.f(i, x)) : x + stack.f(i, stack.norm(i, x));
  }
  expect_equal(stack.run(kInput), stack.final_norm(x));
}

TEST(Residual, AdminAndItsProfilingPass) {
  const Stack stack("admin", 2);
  const auto reference = [&] {
    Tensor x = kInput;
    for (int64_t i = 0; i < stack.count(); ++i)
      x = stack.norm(i, stack.value(i, "omega", "weight") * x + stack.f(i, x));
    return x;
  };
  expect_equal(stack.run(kInput), reference());

  stack.value(0, "omega", "weight").fill_(1);
  static_cast<void>(stack.run(kInput, Pass::profiling));
  Tensor x = kInput;
  double omega = 1;
  for (int64_t i = 0; i < stack.count(); ++i) {
    const Tensor set = stack.value(i, "omega", "weight");
    EXPECT_NEAR(set.min().item<double>(), omega, 1e-12) << i;
    EXPECT_NEAR(set.max().item<double>(), omega, 1e-12) << i;
    const auto variance = [](const Tensor& t) { return (t - t.mean()).square().mean().item<double>(); };
    const Tensor y = stack.f(i, x);
    const double next = std::sqrt(variance(omega * x) + variance(y));
    x = stack.norm(i, omega * x + y);
    omega = next;
  }
  expect_equal(stack.run(kInput), x);
}

TEST(Residual, WithoutNorms) {
  const Stack rezero("rezero", 2);
  const Stack none("plain", 2);
  const Stack highway("highway", 2);
  EXPECT_EQ(none.parameters().count(), 0);
  Tensor r = kInput;
  Tensor n = kInput;
  Tensor h = kInput;
  for (int64_t i = 0; i < none.count(); ++i) {
    r = r + rezero.value(i, "zero_add", "gamma") * rezero.f(i, r);
    n = n + none.f(i, n);
    const Tensor t = at::matmul(h, highway.value(i, "highway", "weight").t()) + highway.value(i, "highway", "bias");
    const Tensor gate = 1 / (1 + at::exp(-t));
    h = gate * highway.f(i, h) + (1 - gate) * h;
  }
  expect_equal(rezero.run(kInput), r);
  expect_equal(none.run(kInput), n);
  expect_equal(highway.run(kInput), h);
}

TEST(Residual, LayerScaleAndNoResidual) {
  const Stack scale("layerscale", 2);
  const Stack without("no-residual", 2);
  Tensor x = kInput;
  Tensor y = kInput;
  for (int64_t i = 0; i < scale.count(); ++i) {
    x = x + scale.value(i, "layer_scale", "weight") * scale.f(i, scale.norm(i, x));
    y = without.norm(i, without.f(i, y));
  }
  expect_equal(scale.run(kInput), scale.final_norm(x));
  expect_equal(without.run(kInput), y);
}

TEST(Residual, Tensor2TensorsGrammar) {
  const auto rms = [](const Stack& stack, int64_t i, const std::string& what, const Tensor& x) {
    return x / (x.square().mean(1, true) + kEps).sqrt() * stack.value(i, what, "weight");
  };
  const Stack stack("rn/dzrh", 2);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    const std::string second = fmt::format("encoder.layers.{}.norm{}_2.", i / kSubLayers, i % kSubLayers + 1);
    const Tensor read =
        Stack::layer_norm(rms(stack, i, "norm", x), stack.value(second + "weight"), stack.value(second + "bias"));
    const Tensor y = rms(stack, i, "post_norm", x + stack.value(i, "zero_add", "gamma") * stack.f(i, read));
    const Tensor t = at::matmul(x, stack.value(i, "highway", "weight").t()) + stack.value(i, "highway", "bias");
    x = at::sigmoid(t) * y + (1 - at::sigmoid(t)) * x;
  }
  const Tensor once = x / (x.square().mean(1, true) + kEps).sqrt() * stack.value("encoder.norm.weight");
  expect_equal(stack.run(kInput),
               Stack::layer_norm(once, stack.value("encoder.norm_2.weight"), stack.value("encoder.norm_2.bias")));
}

TEST(Residual, SchemesHaveTitles) {
  EXPECT_EQ(residual_schemes().title("mhc"), "mHC");
  EXPECT_EQ(residual_schemes().title("pre-ln"), "Pre-LN");
  EXPECT_EQ(residual_schemes().title("n/dnda"), "n/dnda");
}

TEST(Residual, LettersOutOfPlaceAreErrors) {
  EXPECT_THROW(Stack("a/dan", 1), Error);
  EXPECT_THROW(Stack("z/da", 1), Error);
  EXPECT_THROW(Stack("n/dax", 1), Error);
  EXPECT_THROW(Stack("post-nl", 1), Error);
}

class EveryScheme : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryScheme, CanBeDifferentiatedTwice) {
  const Stack stack(GetParam(), 2, StackKind::encoder, {2, 2});
  testing::expect_both([&](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{stack.run(inputs[0])}; },
                       {random_tensor({3, kWidth}, 7)});
}

INSTANTIATE_TEST_SUITE_P(Residual, EveryScheme, ::testing::ValuesIn(residual_schemes().names()), test::name_of_test);

}  // namespace
}  // namespace plumb::residual_test
