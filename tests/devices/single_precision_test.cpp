// Operations on other devices in float32, where they may be fused, against the CPU's in float64: values, gradients and
// second derivatives.
#include <gtest/gtest.h>

#include <functional>

#include "devices.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/update.h"
#include "support/bfloat16.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

class SinglePrecision : public test::OnEachDevice {};
INSTANTIATE_ON_DEVICES(SinglePrecision);

using Operation = std::function<Tensor(const std::vector<Tensor>&)>;

/// f(inputs), its gradient along a fixed cotangent, and the gradient of that gradient's sum of squares.
struct Derivatives {
  Tensor value;
  std::vector<Tensor> first, second;
};

Derivatives derivatives(const Operation& f, const std::vector<Tensor>& inputs, const at::TensorOptions& options) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.to(options).detach().requires_grad_());
  Derivatives found;
  const Tensor value = f(leaves);
  const Tensor cotangent = testing::random_tensor(value.sizes(), 99).to(options);
  found.first = gradients({value}, leaves, {cotangent}, /*create_graph=*/false, /*retain_graph=*/true);
  const std::vector<Tensor> again = gradients({value}, leaves, {cotangent}, /*create_graph=*/true);
  Tensor squares = at::zeros({}, options);
  for (const Tensor& gradient : again) squares = squares + gradient.square().sum();
  for (const Tensor& leaf : leaves) {
    // The gradient of a linear operation does not depend on its arguments.
    found.second.push_back(squares.requires_grad() ? gradients({squares}, {leaf}, {}, false, true)[0]
                                                   : at::zeros_like(leaf));
  }
  found.value = value.detach();
  return found;
}

void expect_same(const at::Device& device, const Operation& f, const std::vector<at::IntArrayRef>& shapes,
                 const std::string& what) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back(testing::random_tensor(shapes[i], 10 + i));
  const Derivatives expected = derivatives(f, inputs, at::TensorOptions(at::kDouble));
  const Derivatives found = derivatives(f, inputs, at::TensorOptions(at::kFloat).device(device));
  const auto close = [&](const Tensor& a, const Tensor& b, const std::string& which) {
    const double scale = std::max(1.0, b.abs().max().item<double>());
    EXPECT_LT((a.cpu().to(at::kDouble) - b).abs().max().item<double>() / scale, 1e-5) << what << ": " << which;
  };
  close(found.value, expected.value, "value");
  for (size_t i = 0; i < inputs.size(); ++i) {
    close(found.first[i], expected.first[i], "gradient " + std::to_string(i));
    close(found.second[i], expected.second[i], "second derivative " + std::to_string(i));
  }
}

TEST_P(SinglePrecision, AttentionOverRaggedBatches) {
  const Ragged layout({5, 1, 9, 33}), sources({7, 3, 1, 20});
  for (const ops::HeadShape& shape : {ops::HeadShape{4, 4, 16}, ops::HeadShape{4, 2, 8}, ops::HeadShape{2, 1, 64}}) {
    const std::string what = std::to_string(shape.heads) + " heads of " + std::to_string(shape.size);
    for (const bool causal : {false, true}) {
      expect_same(
          GetParam(), [&](const auto& x) { return ops::self_attention(x[0], layout, shape, causal); },
          {{layout.tokens(), shape.width() + 2 * shape.kv_width()}}, what + (causal ? ", causal" : ""));
    }
    expect_same(
        GetParam(), [&](const auto& x) { return ops::cross_attention(x[0], x[1], layout, sources, shape); },
        {{layout.tokens(), shape.width()}, {sources.tokens(), 2 * shape.kv_width()}}, what + ", cross");
  }
}

TEST_P(SinglePrecision, AttentionToAnEmptySequence) {
  const Ragged layout({3, 0, 4});
  const ops::HeadShape shape{2, 2, 8};
  expect_same(
      GetParam(), [&](const auto& x) { return ops::self_attention(x[0], layout, shape, true); },
      {{layout.tokens(), 3 * shape.width()}}, "an empty sequence");
}

TEST_P(SinglePrecision, Norms) {
  const Operation layer = [](const auto& x) { return ops::layer_norm(x[0], x[1], x[2], 1e-5); };
  const Operation rms = [](const auto& x) { return ops::rms_norm(x[0], x[1], 1e-6); };
  expect_same(GetParam(), layer, {{37, 48}, {48}, {48}}, "layer norm");
  expect_same(GetParam(), rms, {{37, 48}, {48}}, "RMS norm");
}

TEST_P(SinglePrecision, DropoutKeepsTheSameElements) {
  const ops::DropoutKey whole{uint64_t{0x9E3779B97F4A7C15}, uint64_t{3} << 40 | 17};
  ops::DropoutKey part = whole;
  part.runs = {{0, 5}, {4, 20}};
  for (const ops::DropoutKey& key : {whole, part}) {
    for (const int64_t width : {16, 13}) {
      const Operation dropout = [&](const auto& x) { return ops::add_dropout(x[0], x[1], 0.3, key); };
      expect_same(GetParam(), dropout, {{11, width}, {11, width}}, "dropout of width " + std::to_string(width));
    }
  }
}

TEST_P(SinglePrecision, DropoutLeavesNothingOfWhatItDrops) {
  const Tensor x = at::full({64, 16}, std::numeric_limits<float>::quiet_NaN());
  const ops::DropoutKey key{1, 2};
  const Tensor here = ops::dropout(x, 0.5, key), there = ops::dropout(x.to(GetParam()), 0.5, key).cpu();
  EXPECT_EQ((here == 0).sum().item<int64_t>() + here.isnan().sum().item<int64_t>(), x.numel());
  EXPECT_TRUE(at::equal(there.isnan(), here.isnan()));
  EXPECT_TRUE(at::equal(there == 0, here == 0));
}

TEST_P(SinglePrecision, ProductsInBfloat16) {
  if (!test::has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  ops::MatrixPrecision precision(ops::Precision::bfloat16);
  const Tensor x = testing::random_tensor({24, 32}, 1).to(at::kFloat),
               w = testing::random_tensor({40, 32}, 2).to(at::kFloat);
  const Tensor bias = testing::random_tensor({40}, 3).to(at::kFloat), cotangent = testing::random_tensor({24, 40}, 4);
  const auto step = [&](const at::Device& device) {
    const std::vector<Tensor> leaves{x.to(device).detach().requires_grad_(), w.to(device).detach().requires_grad_(),
                                     bias.to(device).detach().requires_grad_()};
    const ops::PrecisionGuard guard(precision);
    const Tensor y = ops::linear(leaves[0], leaves[1], leaves[2], ops::Activation::relu);
    std::vector<Tensor> found = gradients({y}, leaves, {cotangent.to(at::kFloat).to(device)});
    found.push_back(y.detach());
    return found;
  };
  const std::vector<Tensor> here = step(at::kCPU), there = step(GetParam());
  // Products of bfloat16 numbers are exact in float32, so only the order of the sums differs.
  for (size_t i = 0; i < here.size(); ++i) test::expect_close(there[i].cpu(), here[i], 1e-5, std::to_string(i));
}

TEST_P(SinglePrecision, Updates) {
  const auto after = [&](const at::TensorOptions& options) {
    const auto random = [&](uint64_t seed) {
      std::vector<Tensor> pieces;
      for (uint64_t i = 0; i < 3; ++i) pieces.push_back(testing::random_tensor({300}, 10 * seed + i).to(options));
      return pieces;
    };
    const std::vector<Tensor> w = random(1), g = random(2), m = random(3), v = random(4);
    for (const Tensor& piece : v) piece.abs_();
    ops::AdamUpdate first{.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-3, .step = 0.01, .root_scale = 3, .decay = 0.001};
    first.gradient_scale = 0.25;
    ops::AdamUpdate second = first, third = first;
    second.decay = 0;
    third.root_scale = 0;  // as in the first steps of RAdam
    third.eps = 1;
    ops::update(std::vector{first, second, third}, g, {m, v, w});
    std::vector<Tensor> found{at::full({1}, double(ops::sum_of_squares(g)), at::kDouble)};
    for (const std::vector<Tensor>& pieces : {w, m, v, g}) {
      for (const Tensor& piece : pieces) found.push_back(piece.cpu().to(at::kDouble));
    }
    return found;
  };
  const std::vector<Tensor> here = after(at::TensorOptions(at::kDouble));
  const std::vector<Tensor> there = after(at::TensorOptions(at::kFloat).device(GetParam()));
  for (size_t i = 0; i < here.size(); ++i) test::expect_close(there[i], here[i], 2e-6, std::to_string(i));
}

}  // namespace
}  // namespace plumb
