// Kernel results are bitwise independent of the number of threads.
#include <gtest/gtest.h>

#include "ops/derivatives.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"
#include "plumb/ops/threads.h"
#include "support/kernels.h"

namespace plumb {
namespace {

using testing::random_tensor;
using testing::Tensors;

class Threads : public ::testing::Test {
 protected:
  void SetUp() override { PLUMB_REQUIRE_KERNELS(); }
  void TearDown() override { ops::set_threads(0); }

  /// Compares value, gradients and Hessian-vector products with one, two and five threads.
  static void expect_same(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs, bool second = true) {
    Tensors narrow;
    for (const Tensor& input : inputs) narrow.push_back(input.to(at::kFloat));
    const auto with = [&](int64_t threads) {
      ops::set_threads(threads);
      return testing::derivatives([&](const Tensors& in) { return Tensors{f(in)}; }, narrow, second);
    };
    const Tensors one = with(1);
    for (const int64_t threads : {2, 5}) {
      const Tensors more = with(threads);
      for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(one[i].equal(more[i]))
            << testing::derivative_name(i, inputs.size()) << ", " << threads << " threads";
      }
    }
  }
};

TEST_F(Threads, DropoutMasks) {
  const Tensor x = random_tensor({333, 101}, 1), residual = random_tensor({333, 101}, 2);
  expect_same([](const Tensors& in) { return ops::dropout(in[0] * in[0], 0.3, {7, 9}); }, {x});
  expect_same([](const Tensors& in) { return ops::add_dropout(in[0], in[1] * in[1], 0.3, {7, 9}); }, {residual, x});
}

TEST_F(Threads, Norms) {
  for (const int64_t tokens : {5, 333}) {
    const Tensors inputs = {random_tensor({tokens, 101}, 1), random_tensor({101}, 2), random_tensor({101}, 3)};
    expect_same([](const Tensors& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-5); }, inputs);
    expect_same([](const Tensors& in) { return ops::rms_norm(in[0], in[1], 1e-5); }, {inputs[0], inputs[1]});
  }
}

TEST_F(Threads, Attention) {
  const Ragged layout({1, 90, 3, 20, 7, 7}), other({5, 1, 60, 3, 8, 2});
  expect_same(
      [&](const Tensors& in) {
        return ops::self_attention(in[0], layout, {2, 2, 7}, true);
      },
      {random_tensor({layout.tokens(), 42}, 1)});
  expect_same(
      [&](const Tensors& in) {
        return ops::cross_attention(in[0], in[1], layout, other, {2, 2, 7});
      },
      {random_tensor({layout.tokens(), 14}, 1), random_tensor({other.tokens(), 28}, 2)});
}

TEST_F(Threads, ColumnSumsAndEmbeddings) {
  for (const int64_t rows : {40, 1001}) {
    // Without second derivatives: there, LibTorch's sum over an expanded vector depends on the number of threads.
    expect_same([](const Tensors& in) { return ops::column_sums(in[0] * in[0]); }, {random_tensor({rows, 37}, 1)},
                /*second=*/false);
  }
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 700; ++i) ids.push_back(i * i % 13);
  expect_same([&](const Tensors& in) { return ops::embedding(in[0] * in[0], ids, 2.0); },
              {random_tensor({13, 130}, 1)});
}

TEST_F(Threads, CrossEntropy) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 333; ++i) labels.push_back(i * i % 57);
  expect_same([&](const Tensors& in) { return ops::cross_entropy(in[0], labels, {}, 0.1, 0.01).loss; },
              {random_tensor({333, 57}, 1)});
}

}  // namespace
}  // namespace plumb
