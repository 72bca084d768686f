// The reference implementations: values, first and second derivatives, and other floating-point types. The kernels are
// compared with them in kernels/reference_test.cpp; the whole suite also runs with PLUMB_KERNELS=off.
#include "plumb/ops/implementations.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/norm.h"
#include "support/gradcheck.h"
#include "support/reference.h"

namespace plumb {
namespace {

using testing::expect_both;
using testing::random_tensor;
using Tensors = std::vector<Tensor>;

TEST(References, OfAttention) {
  const Ragged queries({2, 4, 1}), keys({3, 2, 5});
  for (const ops::HeadShape& shape : {ops::HeadShape{2, 2, 2}, {4, 2, 1}}) {
    const int64_t d = shape.width(), kv = shape.kv_width();
    const Tensors inputs = {random_tensor({7, d}, 1), random_tensor({10, 2 * kv}, 2)};
    const auto cross = [&](const Tensors& in) {
      return Tensors{ops::reference::cross_attention(in[0], in[1], queries, keys, shape)};
    };
    const Tensor expected = reference::attention(inputs[0], inputs[1].narrow(1, 0, kv), inputs[1].narrow(1, kv, kv),
                                                 queries, keys, shape.size, false);
    EXPECT_LT((cross(inputs)[0] - expected).abs().max().item<double>(), 1e-14);
    expect_both(cross, inputs);

    const Tensor packed = random_tensor({10, d + 2 * kv}, 3);
    const auto self = [&](const Tensors& in) {
      return Tensors{ops::reference::self_attention(in[0], keys, shape, true)};
    };
    const Tensor causal = reference::attention(packed.narrow(1, 0, d), packed.narrow(1, d, kv),
                                               packed.narrow(1, d + kv, kv), keys, keys, shape.size, true);
    EXPECT_LT((self({packed})[0] - causal).abs().max().item<double>(), 1e-14);
    expect_both(self, {packed});
  }
}

TEST(References, OfCrossEntropy) {
  const std::vector<int64_t> labels = {1, 0, 6, 3};
  for (const std::vector<double>& weights : {std::vector<double>{}, {0.5, 0.0, 2.0, 1.0}}) {
    const Tensor logits = random_tensor({4, 7}, 1);
    const auto of_logits = [&](const Tensors& in) {
      return Tensors{ops::reference::cross_entropy(in[0], labels, weights, 0.3, 0.25).loss};
    };
    EXPECT_NEAR(of_logits({logits})[0].item<double>(),
                reference::cross_entropy(logits, labels, weights, 0.3, 0.25).item<double>(), 1e-14);
    expect_both(of_logits, {logits});
    expect_both(
        [&](const Tensors& in) {
          return Tensors{ops::reference::linear_cross_entropy(in[0], in[1], in[2], labels, weights, 0.3, 0.25).loss};
        },
        {random_tensor({4, 3}, 2), random_tensor({7, 3}, 3), random_tensor({7}, 4)});
  }
}

TEST(References, OfDropout) {
  const ops::DropoutKey key{0xFEDCBA9876543210, 0x89ABCDEF01234567};
  const Tensor x = random_tensor({11, 67}, 1);
  constexpr uint32_t kKeepBelow = 45875;  // 0.7 · 65536, rounded
  const std::vector<double> kept = reference::dropout_mask(key.seed, key.stream, kKeepBelow, 0, x.numel());
  const Tensor mask = at::tensor(kept, at::kDouble).view(x.sizes()) * (65536.0 / kKeepBelow);
  EXPECT_LT((ops::reference::add_dropout(Tensor(), x, 0.3, key) - mask * x).abs().max().item<double>(), 1e-14);
  expect_both([&](const Tensors& in) { return Tensors{ops::reference::add_dropout(in[0], in[1].square(), 0.4, key)}; },
              {random_tensor({4, 5}, 1), random_tensor({4, 5}, 2)});
}

TEST(References, OfNorms) {
  const Tensors inputs = {random_tensor({3, 5}, 1), random_tensor({5}, 2), random_tensor({5}, 3)};
  const auto layer_norm = [](const Tensors& in) {
    return Tensors{ops::reference::layer_norm(in[0], in[1], in[2], 1e-2)};
  };
  const auto rms_norm = [](const Tensors& in) { return Tensors{ops::reference::rms_norm(in[0], in[1], 1e-2)}; };
  const Tensor expected = reference::norm(inputs[0], inputs[1], inputs[2], 1e-2);
  EXPECT_LT((layer_norm(inputs)[0] - expected).abs().max().item<double>(), 1e-14);
  EXPECT_LT((rms_norm(inputs)[0] - reference::norm(inputs[0], inputs[1], Tensor(), 1e-2)).abs().max().item<double>(),
            1e-14);
  expect_both(layer_norm, inputs);
  expect_both(rms_norm, {inputs[0], inputs[1]});
}

TEST(References, OfLinearLayersAndEmbeddings) {
  const Tensors inputs = {random_tensor({5, 3}, 1), random_tensor({4, 3}, 2), random_tensor({4}, 3)};
  expect_both(
      [](const Tensors& in) { return Tensors{ops::reference::linear(in[0], in[1], in[2], ops::Activation::relu)}; },
      inputs);
  expect_both(
      [](const Tensors& in) {
        return Tensors{ops::embedding(in[0].square(), {2, 0, 2, 3}, 1.7)};
      },
      {random_tensor({5, 3}, 1)});
}

TEST(References, OfProductsAndSums) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      expect_both([&](const Tensors& in) { return Tensors{ops::reference::matrix_product(in[0], in[1], ta, tb)}; },
                  {ta ? random_tensor({3, 4}, 1) : random_tensor({4, 3}, 1),
                   tb ? random_tensor({5, 3}, 2) : random_tensor({3, 5}, 2)});
    }
  }
  expect_both([](const Tensors& in) { return Tensors{ops::reference::column_sums(in[0] * in[0])}; },
              {random_tensor({70, 3}, 1)});
}

// The kernels would read or write past the end of what does not fit.
TEST(Operations, RefuseWhatDoesNotFit) {
  const auto values = [](at::IntArrayRef shape) { return random_tensor(shape, 1).to(at::kFloat); };
  const Tensor a = values({4, 6}), b = values({6, 5});
  EXPECT_NO_THROW(ops::gemm(a, b, {.accumulate_into = values({4, 5})}));
  EXPECT_THROW(ops::gemm(a, b, {.transpose_b = true}), Error);
  EXPECT_THROW(ops::gemm(a, b.to(at::kBFloat16)), Error) << "types";
  EXPECT_THROW(ops::gemm(a, b, {.bias = values({4})}), Error);
  EXPECT_THROW(ops::gemm(a, b, {.accumulate_into = values({5, 4})}), Error);
  EXPECT_THROW(ops::gemm(a, b, {.accumulate_into = values({5, 4}).t()}), Error) << "columns, not rows, are contiguous";
  EXPECT_THROW(ops::symmetric_product(a, values({5, 6})), Error);
  EXPECT_THROW(ops::symmetric_product(a, a, {.plus = values({4, 6})}), Error);
  EXPECT_THROW((void)ops::PackedLinear(a, ops::Precision::float32)(values({2, 6}), values({3}), false), Error);
  const Tensor six = values({6}), five = values({5});
  EXPECT_NO_THROW(ops::layer_norm(a, six, six, 1e-5));
  EXPECT_THROW(ops::layer_norm(a, six, five, 1e-5), Error);
  EXPECT_THROW(ops::rms_norm(a, five, 1e-5), Error);
  EXPECT_THROW(ops::add_dropout(values({3, 6}), a, 0.5, {}), Error);
  EXPECT_THROW(ops::dropout(a, 1.5, {}), Error);
  EXPECT_THROW(ops::add_dropout(a, a, -0.5, {}), Error);
  EXPECT_THROW(ops::top_scores(a, 0, 0, true), Error);
  EXPECT_THROW(ops::top_scores(a, 1, 7, true), Error);
  Tensor w = six.clone();
  EXPECT_THROW(ops::gram_schmidt({five}, {}, true, w), Error);
  EXPECT_THROW(ops::gram_schmidt({b.select(1, 0)}, {}, true, w), Error) << "a column of a matrix";
  EXPECT_THROW(ops::gram_schmidt({six}, {1.0, 2.0}, true, w), Error);
}

TEST(References, TakeOverWhereThereIsNoKernel) {
  // For bfloat16, there are kernels only for products.
  const Tensor x = random_tensor({6, 8}, 1), gamma = random_tensor({8}, 2), beta = random_tensor({8}, 3);
  const std::vector<int64_t> labels = {1, 2, 3, 4, 5, 6};
  const Ragged layout({2, 4});
  const auto all = [&](at::ScalarType type) {
    const Tensor in = x.to(type);
    return Tensors{ops::self_attention(in, layout, {2, 1, 2}, true), ops::cross_entropy(in, labels, {}, 0.1, 1.0).loss,
                   ops::dropout(in, 0.5, {1, 2})};
  };
  const Tensors expected = all(at::kDouble), found = all(at::kBFloat16);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].scalar_type(), at::kBFloat16);
    EXPECT_LT((found[i].to(at::kDouble) - expected[i]).abs().max().item<double>(),
              0.02 * expected[i].abs().max().item<double>());
  }
}

}  // namespace
}  // namespace plumb
