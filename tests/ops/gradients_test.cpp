// gradcheck and gradgradcheck of every operation.
#include <gtest/gtest.h>

#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::expect_both;
using testing::random_tensor;
using Tensors = std::vector<Tensor>;

TEST(Gradients, MatrixProductInAllFourOrientations) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = random_tensor(ta ? at::IntArrayRef{3, 4} : at::IntArrayRef{4, 3}, 1);
      const Tensor b = random_tensor(tb ? at::IntArrayRef{5, 3} : at::IntArrayRef{3, 5}, 2);
      expect_both([&](const Tensors& in) { return Tensors{ops::matrix_product(in[0], in[1], ta, tb)}; }, {a, b});
    }
  }
}

TEST(Gradients, Linear) {
  const Tensors inputs = {random_tensor({5, 3}, 1), random_tensor({4, 3}, 2), random_tensor({4}, 3)};
  expect_both([](const Tensors& in) { return Tensors{ops::linear(in[0], in[1], in[2])}; }, inputs);
  expect_both([](const Tensors& in) { return Tensors{ops::linear(in[0], in[1], in[2], ops::Activation::relu)}; },
              inputs);
  expect_both([](const Tensors& in) { return Tensors{ops::linear(in[0], in[1], Tensor(), ops::Activation::relu)}; },
              {inputs[0], inputs[1]});
}

TEST(Gradients, ColumnSums) {
  expect_both([](const Tensors& in) { return Tensors{ops::column_sums(in[0] * in[0])}; }, {random_tensor({70, 3}, 1)});
}

TEST(Gradients, LayerNorm) {
  for (const int64_t width : {1, 2, 5, 19}) {
    expect_both([](const Tensors& in) { return Tensors{ops::layer_norm(in[0], in[1], in[2], 1e-2)}; },
                {random_tensor({3, width}, 1), random_tensor({width}, 2), random_tensor({width}, 3)});
  }
}

TEST(Gradients, RmsNorm) {
  for (const int64_t width : {1, 5, 19}) {
    expect_both([](const Tensors& in) { return Tensors{ops::rms_norm(in[0], in[1], 1e-2)}; },
                {random_tensor({3, width}, 1), random_tensor({width}, 2)});
  }
}

// One key-value head per query head, per group, and for all.
constexpr ops::HeadShape kHeadShapes[] = {{2, 2, 2}, {4, 2, 1}, {3, 1, 2}};

TEST(Gradients, SelfAttention) {
  for (const ops::HeadShape& shape : kHeadShapes) {
    for (const bool causal : {false, true}) {
      const Ragged layout({3, 1, 5});
      expect_both([&](const Tensors& in) { return Tensors{ops::self_attention(in[0], layout, shape, causal)}; },
                  {random_tensor({9, shape.width() + 2 * shape.kv_width()}, 1, 0.8)});
    }
  }
}

TEST(Gradients, SelfAttentionLongerThanABlockOfQueries) {
  const Ragged layout({50});
  expect_both(
      [&](const Tensors& in) {
        return Tensors{ops::self_attention(in[0], layout, {1, 1, 1}, true)};
      },
      {random_tensor({50, 3}, 1)});
}

TEST(Gradients, CrossAttention) {
  const Ragged queries({2, 4, 1});
  const Ragged keys({3, 2, 5});
  for (const ops::HeadShape& shape : kHeadShapes) {
    expect_both([&](const Tensors& in) { return Tensors{ops::cross_attention(in[0], in[1], queries, keys, shape)}; },
                {random_tensor({7, shape.width()}, 1), random_tensor({10, 2 * shape.kv_width()}, 2)});
  }
}

TEST(Gradients, Dropout) {
  const ops::DropoutKey key{7, 3};
  expect_both([&](const Tensors& in) { return Tensors{ops::dropout(in[0] * in[0], 0.4, key)}; },
              {random_tensor({4, 5}, 1)});
  expect_both([&](const Tensors& in) { return Tensors{ops::add_dropout(in[0], in[1] * in[1], 0.4, key)}; },
              {random_tensor({4, 5}, 1), random_tensor({4, 5}, 2)});
}

TEST(Gradients, Embedding) {
  const std::vector<int64_t> ids = {2, 0, 2, 3};
  expect_both([&](const Tensors& in) { return Tensors{ops::embedding(in[0] * in[0], ids, 1.7)}; },
              {random_tensor({5, 3}, 1)});
}

TEST(Gradients, CrossEntropy) {
  const std::vector<int64_t> labels = {1, 0, 6, 3};
  for (const std::vector<double>& weights : {std::vector<double>{}, {0.5, 0.0, 2.0, 1.0}}) {
    for (const double smoothing : {0.0, 0.3}) {
      expect_both(
          [&](const Tensors& in) { return Tensors{ops::cross_entropy(in[0], labels, weights, smoothing, 0.25).loss}; },
          {random_tensor({4, 7}, 1)});
    }
  }
}

TEST(Gradients, LinearCrossEntropy) {
  std::vector<int64_t> labels;
  std::vector<double> weights;
  for (int64_t i = 0; i < 150; ++i) {
    labels.push_back(i * 7 % 11);
    weights.push_back(static_cast<double>(i % 4) / 2);
  }
  const Tensors inputs = {random_tensor({150, 2}, 1), random_tensor({11, 2}, 2), random_tensor({11}, 3)};
  testing::expect_gradients(
      [&](const Tensors& in) {
        return Tensors{ops::linear_cross_entropy(in[0], in[1], Tensor(), labels, {}, 0.1, 0.01).loss};
      },
      {inputs[0], inputs[1]});
  testing::expect_gradients(
      [&](const Tensors& in) {
        return Tensors{ops::linear_cross_entropy(in[0], in[1], in[2], labels, weights, 0.1, 0.01).loss};
      },
      inputs);
}

}  // namespace
}  // namespace plumb
