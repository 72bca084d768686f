// The QRNN compared with scalar loops, and with finite differences.
#include "plumb/ops/qrnn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/fallback.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::random_tensor;

double qrnn_distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : (a.detach() - b.detach()).abs().max().item<double>();
}

/// x, W, b, c_0 and, with a window of 2, the x before the first position.
std::vector<Tensor> qrnn_inputs(const Ragged& layout, int64_t in, int64_t size, int64_t window) {
  std::vector<Tensor> all = {random_tensor({layout.tokens(), in}, 1), random_tensor({3 * size, window * in}, 2, 0.7),
                             random_tensor({3 * size}, 3), random_tensor({layout.sequences(), size}, 4)};
  if (window == 2) all.push_back(random_tensor({layout.sequences(), in}, 5));
  return all;
}

ops::QrnnState qrnn_start(const std::vector<Tensor>& in) { return {in[3], in.size() > 4 ? in[4] : Tensor()}; }

ops::QrnnResult qrnn_of(const std::vector<Tensor>& in, const Ragged& layout) {
  return ops::qrnn(in[0], {in[1], in[2]}, qrnn_start(in), layout);
}

/// The equations in scalar loops, without an autograd graph.
ops::QrnnResult qrnn_by_numbers(const std::vector<Tensor>& in, const Ragged& layout) {
  const int64_t size = in[3].size(1), width = in[0].size(1);
  const bool looks_back = in.size() > 4;
  const auto x = in[0].accessor<double, 2>(), w = in[1].accessor<double, 2>();
  const auto b = in[2].accessor<double, 1>();
  ops::QrnnResult result{at::zeros({layout.tokens(), size}, at::kDouble), {in[3].clone(), Tensor()}};
  if (looks_back) result.last.input = in[4].clone();
  auto out = result.hidden.accessor<double, 2>(), c = result.last.cell.accessor<double, 2>();
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
      const auto sum = [&](int64_t row) {
        double total = b[row];
        for (int64_t j = 0; j < width; ++j) {
          total += w[row][j] * x[t][j];
          if (looks_back) total += w[row][width + j] * result.last.input[s][j].item<double>();
        }
        return total;
      };
      for (int64_t j = 0; j < size; ++j) {
        const double z = std::tanh(sum(j)), f = sigmoid(sum(size + j)), o = sigmoid(sum(2 * size + j));
        c[s][j] = f * c[s][j] + (1 - f) * z;
        out[t][j] = o * c[s][j];
      }
      if (looks_back) result.last.input[s].copy_(in[0][t]);
    }
  }
  return result;
}

void expect_equal_qrnn(const ops::QrnnResult& found, const ops::QrnnResult& expected, double tolerance) {
  EXPECT_LT(qrnn_distance(found.hidden, expected.hidden), tolerance);
  EXPECT_LT(qrnn_distance(found.last.cell, expected.last.cell), tolerance);
  ASSERT_EQ(found.last.input.defined(), expected.last.input.defined());
  if (expected.last.input.defined()) {
    EXPECT_LT(qrnn_distance(found.last.input, expected.last.input), tolerance);
  }
}

/// One sequence, equal lengths, unordered different lengths, a single position each, and empty sequences.
const std::vector<std::vector<int64_t>> kQrnnLayouts = {{7}, {4, 4, 4}, {2, 9, 1, 5}, {1, 1, 1}, {0, 3, 0, 6, 0}};

TEST(Qrnn, EqualsALoopOverNumbers) {
  for (const auto& lengths : kQrnnLayouts) {
    for (const int64_t size : {1, 5}) {
      for (const int64_t window : {1, 2}) {
        SCOPED_TRACE(::testing::Message() << lengths.size() << " sequences, " << size << " wide, window " << window);
        const Ragged layout(lengths);
        const std::vector<Tensor> in = qrnn_inputs(layout, 3, size, window);
        expect_equal_qrnn(qrnn_of(in, layout), qrnn_by_numbers(in, layout), 1e-12);
      }
    }
  }
}

TEST(Qrnn, BeginsWithZerosUnlessToldOtherwise) {
  const Ragged layout({3, 5});
  for (const int64_t window : {1, 2}) {
    std::vector<Tensor> in = qrnn_inputs(layout, 2, 4, window);
    for (size_t i = 3; i < in.size(); ++i) in[i].zero_();
    expect_equal_qrnn(ops::qrnn(in[0], {in[1], in[2]}, {}, layout), qrnn_by_numbers(in, layout), 1e-12);
  }
}

TEST(Qrnn, ContinuesWhereASequenceWasCut) {
  const Ragged whole({5, 4}), first({2, 3}), second({3, 1});
  const auto rows = [](const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong); };
  const Tensor of_first = rows({0, 1, 5, 6, 7}), of_second = rows({2, 3, 4, 8});
  for (const int64_t window : {1, 2}) {
    const std::vector<Tensor> in = qrnn_inputs(whole, 2, 4, window);
    const ops::QrnnResult expected = qrnn_by_numbers(in, whole);
    const ops::QrnnWeights weights{in[1], in[2]};
    const ops::QrnnResult begun = ops::qrnn(in[0].index_select(0, of_first), weights, qrnn_start(in), first);
    const ops::QrnnResult ended = ops::qrnn(in[0].index_select(0, of_second), weights, begun.last, second);
    EXPECT_LT(qrnn_distance(begun.hidden, expected.hidden.index_select(0, of_first)), 1e-12);
    EXPECT_LT(qrnn_distance(ended.hidden, expected.hidden.index_select(0, of_second)), 1e-12);
    EXPECT_LT(qrnn_distance(ended.last.cell, expected.last.cell), 1e-12);
  }
}

TEST(Qrnn, WithoutPositionsKeepsItsState) {
  const Ragged layout({0, 0});
  const std::vector<Tensor> in = qrnn_inputs(layout, 2, 4, 2);
  const ops::QrnnResult found = qrnn_of(in, layout);
  EXPECT_EQ(found.hidden.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_TRUE(at::equal(found.last.cell, in[3]));
  EXPECT_TRUE(at::equal(found.last.input, in[4]));
}

TEST(Qrnn, HasGradientsAndSecondOnes) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{3}, {2, 0, 3, 1}}) {
    for (const int64_t window : {1, 2}) {
      const Ragged layout(lengths);
      testing::expect_both(
          [&](const std::vector<Tensor>& in) {
            const ops::QrnnResult found = qrnn_of(in, layout);
            std::vector<Tensor> all{found.hidden, found.last.cell};
            if (window == 2) all.push_back(found.last.input);
            return all;
          },
          qrnn_inputs(layout, 2, 2, window));
    }
  }
}

TEST(Qrnn, InSinglePrecision) {
  const Ragged layout({6, 2, 11});
  const std::vector<Tensor> in = qrnn_inputs(layout, 9, 17, 2);
  std::vector<Tensor> single;
  for (const Tensor& tensor : in) single.push_back(tensor.to(at::kFloat));
  const ops::QrnnResult found = qrnn_of(single, layout);
  EXPECT_EQ(found.hidden.scalar_type(), at::kFloat);
  EXPECT_LT(qrnn_distance(found.hidden.to(at::kDouble), qrnn_by_numbers(in, layout).hidden), 1e-4);
}

TEST(Qrnn, TrainsWithoutSlowPaths) {
  const ops::FallbackCounter fallbacks;
  const Ragged layout({5, 5, 5});
  std::vector<Tensor> in;
  for (const Tensor& each : qrnn_inputs(layout, 4, 6, 2)) in.push_back(each.to(at::kFloat).requires_grad_());
  const ops::QrnnResult result = qrnn_of(in, layout);
  gradients({result.hidden, result.last.cell}, in, {at::ones_like(result.hidden), at::ones_like(result.last.cell)});
  EXPECT_TRUE(fallbacks.counts().empty());
}

TEST(Qrnn, NanReachesAllThatDependsOnIt) {
  const Ragged layout({4, 3});
  const std::vector<Tensor> in = qrnn_inputs(layout, 2, 3, 2);
  in[0][1][0] = std::numeric_limits<double>::quiet_NaN();
  const ops::QrnnResult found = qrnn_of(in, layout);
  for (int64_t t = 0; t < 7; ++t) EXPECT_EQ(found.hidden[t].isnan().all().item<bool>(), t >= 1 && t < 4) << t;
  EXPECT_TRUE(found.last.cell[0].isnan().all().item<bool>());
  EXPECT_FALSE(found.last.cell[1].isnan().any().item<bool>());
}

TEST(Qrnn, RefusesShapesThatDoNotFit) {
  const Ragged layout({2, 3});
  const std::vector<Tensor> in = qrnn_inputs(layout, 2, 3, 2);
  EXPECT_NO_THROW(qrnn_of(in, layout));
  EXPECT_THROW(qrnn_of(in, Ragged({2, 2})), Error);
  for (size_t i = 1; i < in.size(); ++i) {
    std::vector<Tensor> wrong = in;
    wrong[i] = in[i].narrow(0, 0, in[i].size(0) - 1);
    EXPECT_THROW(qrnn_of(wrong, layout), Error) << i;
  }
  EXPECT_THROW(ops::qrnn(in[0], {random_tensor({9, 6}, 1), in[2]}, {}, layout), Error);  // a window of 3
  EXPECT_THROW(ops::qrnn(in[0], {in[1], in[2]}, {in[3], {}}, layout), Error);
}

}  // namespace
}  // namespace plumb
