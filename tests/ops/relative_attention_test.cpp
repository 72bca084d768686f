// Attention with scores by distance: float64 compared with scalar loops, and float32 with float64.
#include "plumb/ops/relative_attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/kernels/instruction_set.h"
#include "plumb/ops/threads.h"
#include "support/gradcheck.h"
#include "support/kernels.h"

namespace plumb {
namespace {

using ops::HeadShape;
using testing::random_tensor;

/// content, position, key_value and distance.
std::vector<Tensor> relative_inputs(const Ragged& layout, const HeadShape& shape, double scale = 1) {
  return {random_tensor({layout.tokens(), shape.width()}, 1, scale),
          random_tensor({layout.tokens(), shape.width()}, 2, scale),
          random_tensor({layout.tokens(), 2 * shape.kv_width()}, 3, scale),
          random_tensor({layout.longest() + 2, shape.width()}, 4, scale)};
}

Tensor relative(const std::vector<Tensor>& in, const Ragged& layout, const HeadShape& shape) {
  return ops::relative_attention(in[0], in[1], in[2], in[3], layout, shape);
}

/// The equation in scalar loops.
Tensor relative_by_numbers(const std::vector<Tensor>& in, const Ragged& layout, const HeadShape& shape) {
  const auto c = in[0].accessor<double, 2>(), p = in[1].accessor<double, 2>(), kv = in[2].accessor<double, 2>(),
             r = in[3].accessor<double, 2>();
  Tensor result = at::zeros({layout.tokens(), shape.width()}, at::kDouble);
  auto out = result.accessor<double, 2>();
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t i = 0; i < layout.length(s); ++i) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        const int64_t row = layout.begin(s) + i, column = h * shape.size, key = h / shape.group() * shape.size;
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (int64_t f = 0; f < shape.size; ++f)
            score += c[row][column + f] * kv[layout.begin(s) + j][key + f] + p[row][column + f] * r[i - j][column + f];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(shape.size))));
          sum += weights.back();
        }
        for (int64_t j = 0; j <= i; ++j) {
          for (int64_t f = 0; f < shape.size; ++f)
            out[row][column + f] +=
                weights[static_cast<size_t>(j)] / sum * kv[layout.begin(s) + j][shape.kv_width() + key + f];
        }
      }
    }
  }
  return result;
}

TEST(RelativeAttention, IsThatOfTheEquation) {
  const Ragged layout({5, 0, 1, 7});
  for (const HeadShape& shape : {HeadShape{1, 1, 4}, HeadShape{4, 4, 3}, HeadShape{6, 2, 2}}) {
    const std::vector<Tensor> in = relative_inputs(layout, shape);
    EXPECT_LT((relative(in, layout, shape) - relative_by_numbers(in, layout, shape)).abs().max().item<double>(), 1e-13);
  }
}

TEST(RelativeAttention, HasFirstAndSecondDerivatives) {
  const Ragged layout({3, 1});
  const HeadShape shape{2, 1, 2};
  testing::expect_both([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{relative(in, layout, shape)}; },
                       relative_inputs(layout, shape));
}

/// The result, its gradients with respect to all inputs for a random cotangent, and the gradients of the dot product of
/// those with random directions, in the type of the inputs.
std::vector<Tensor> two_derivatives(const std::vector<Tensor>& inputs, const Ragged& layout, const HeadShape& shape) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_());
  const Tensor out = relative(leaves, layout, shape);
  const Tensor cotangent = random_tensor(out.sizes(), 5).to(out.dtype());
  std::vector<Tensor> all = {out};
  for (const Tensor& plain : gradients({out}, leaves, {cotangent}, false, true)) all.push_back(plain);
  const std::vector<Tensor> first = gradients({out}, leaves, {cotangent}, true);
  Tensor dot = at::zeros({}, out.options());
  for (size_t i = 0; i < first.size(); ++i)
    dot = dot + (first[i] * random_tensor(first[i].sizes(), 6 + i).to(out.dtype())).sum();
  for (const Tensor& second : gradients({dot}, leaves, {})) all.push_back(second);
  return all;
}

TEST(RelativeAttention, KernelsComputeTheSame) {
  PLUMB_REQUIRE_KERNELS();
  const Ragged layout({1, 25, 63, 0, 64, 65, 257, 330});  // blocks have 64 queries and, in gradients, 256 keys
  for (const HeadShape& shape : {HeadShape{1, 1, 5}, HeadShape{4, 4, 8}, HeadShape{6, 2, 3}, HeadShape{2, 1, 40}}) {
    const std::vector<Tensor> in = relative_inputs(layout, shape, 0.8);
    std::vector<Tensor> single;
    for (const Tensor& each : in) single.push_back(each.to(at::kFloat));
    const std::vector<Tensor> expected = two_derivatives(in, layout, shape);
    for (const std::string& name : kernels::instruction_sets()) {
      kernels::use_instruction_set(name);
      const std::vector<Tensor> found = two_derivatives(single, layout, shape);
      ASSERT_EQ(found.size(), 9U);
      for (size_t i = 0; i < found.size(); ++i) {
        const double distance = (found[i].to(at::kDouble) - expected[i]).norm().item<double>();
        EXPECT_LT(distance, 1e-6 * expected[i].norm().item<double>()) << name << " " << i;
      }
    }
    kernels::use_instruction_set("");
  }
}

TEST(RelativeAttention, TheNumberOfThreadsChangesNothing) {
  const int threads = omp_get_max_threads();
  const Ragged layout({130, 40});
  const HeadShape shape{4, 2, 8};
  std::vector<Tensor> in;
  for (const Tensor& each : relative_inputs(layout, shape)) in.push_back(each.to(at::kFloat));
  ops::set_threads(1);
  const std::vector<Tensor> alone = two_derivatives(in, layout, shape);
  ops::set_threads(3);
  const std::vector<Tensor> together = two_derivatives(in, layout, shape);
  ops::set_threads(threads);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(together[i].equal(alone[i])) << i;
}

TEST(RelativeAttention, ReadsKeysAndValuesWithinAWiderMatrix) {
  const Ragged layout({70, 3});
  const HeadShape shape{2, 2, 4};
  std::vector<Tensor> in;
  for (const Tensor& each : relative_inputs(layout, shape)) in.push_back(each.to(at::kFloat));
  const Tensor expected = relative(in, layout, shape);
  in[2] = at::cat({at::ones({in[2].size(0), 3}, at::kFloat), in[2]}, 1).narrow(1, 3, in[2].size(1));
  EXPECT_TRUE(relative(in, layout, shape).equal(expected));
}

TEST(RelativeAttention, ANaNReachesThePositionsThatSeeIt) {
  const Ragged layout({70, 5});
  const HeadShape shape{2, 2, 4};
  std::vector<Tensor> in;
  for (const Tensor& each : relative_inputs(layout, shape)) in.push_back(each.to(at::kFloat));
  in[2][66][0] = std::numeric_limits<float>::quiet_NaN();  // a key
  const Tensor nan = relative(in, layout, shape).isnan().any(1);
  EXPECT_FALSE(nan.narrow(0, 0, 66).any().item<bool>());
  EXPECT_TRUE(nan.narrow(0, 66, 4).all().item<bool>());
  EXPECT_FALSE(nan.narrow(0, 70, 5).any().item<bool>());
}

TEST(RelativeAttention, RefusesMatricesThatDoNotFit) {
  const Ragged layout({3, 2});
  const HeadShape shape{2, 1, 4};
  for (size_t i = 0; i < 4; ++i) {
    std::vector<Tensor> in = relative_inputs(layout, shape);
    in[i] = random_tensor({in[i].size(0), 7}, 1);
    EXPECT_THROW((void)relative(in, layout, shape), Error) << i;
  }
  std::vector<Tensor> in = relative_inputs(layout, shape);
  in[3] = random_tensor({2, shape.width()}, 1);
  EXPECT_THROW((void)relative(in, layout, shape), Error) << "a distance of 2 has no row";
  EXPECT_THROW((void)relative(relative_inputs(layout, {3, 2, 4}), layout, {3, 2, 4}), Error) << "2 do not divide 3";
}

}  // namespace
}  // namespace plumb
