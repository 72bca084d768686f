// The LSTM compared with PyTorch's (tests/golden/README.md), also its derivatives, and with scalar loops.
#include "plumb/ops/lstm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/lstm_peer.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/ops/precision.h"
#include "support/fallbacks.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

double lstm_distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : (a.detach() - b.detach()).abs().max().item<double>();
}

struct LstmInputs {
  std::vector<Tensor> all;
  Tensor x;
  ops::LstmWeights weights;
  ops::LstmState start;

  LstmInputs(const Ragged& layout, int64_t in, int64_t size)
      : all(testing::lstm_inputs(layout, in, size)),
        x(all[0]),
        weights{all[1], all[2], all[3], all[4]},
        start{all[5], all[6]} {}
};

/// A matrix from JSON: a list of at least one row.
Tensor lstm_matrix(const Json& json) {
  std::vector<Tensor> rows;
  for (const Json& row : json)
    rows.push_back(at::tensor(at::ArrayRef<double>(row.get<std::vector<double>>()), at::kDouble));
  return at::stack(rows);
}
Tensor lstm_tensor(const Json& json) {
  if (json.at(0).is_array()) return lstm_matrix(json);
  return at::tensor(at::ArrayRef<double>(json.get<std::vector<double>>()), at::kDouble);
}

/// The equations in scalar loops, without an autograd graph.
ops::LstmResult lstm_by_numbers(const LstmInputs& in, const Ragged& layout) {
  const int64_t size = in.weights.hidden.size(1), width = in.x.size(1);
  const auto x = in.x.accessor<double, 2>(), w = in.weights.input.accessor<double, 2>(),
             u = in.weights.hidden.accessor<double, 2>();
  const auto b = in.weights.input_bias.accessor<double, 1>(), b_hidden = in.weights.hidden_bias.accessor<double, 1>();
  ops::LstmResult result{at::zeros({layout.tokens(), size}, at::kDouble),
                         {in.start.hidden.clone(), in.start.cell.clone()}};
  auto out = result.hidden.accessor<double, 2>();
  auto h = result.last.hidden.accessor<double, 2>(), c = result.last.cell.accessor<double, 2>();
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
      std::vector<double> z;
      for (int64_t row = 0; row < 4 * size; ++row) {
        double sum = b[row] + b_hidden[row];
        for (int64_t j = 0; j < width; ++j) sum += w[row][j] * x[t][j];
        for (int64_t j = 0; j < size; ++j) sum += u[row][j] * h[s][j];
        z.push_back(sum);
      }
      const auto gate = [&](int64_t which, int64_t j) { return z[static_cast<size_t>(which * size + j)]; };
      for (int64_t j = 0; j < size; ++j) {
        c[s][j] = sigmoid(gate(1, j)) * c[s][j] + sigmoid(gate(0, j)) * std::tanh(gate(2, j));
        out[t][j] = h[s][j] = sigmoid(gate(3, j)) * std::tanh(c[s][j]);
      }
    }
  }
  return result;
}

TEST(Lstm, EqualsPyTorch) {
  const Json golden = read_json(test::source_directory() / "tests" / "golden" / "lstm.json");
  const Ragged layout(golden["lengths"].get<std::vector<int64_t>>());
  const std::vector<std::string> names = {"x",          "hidden",    "cell", "weight_ih_l0", "weight_hh_l0",
                                          "bias_ih_l0", "bias_hh_l0"};
  std::vector<Tensor> in;
  for (const std::string& name : names) in.push_back(lstm_tensor(golden[name]).requires_grad_());
  const ops::LstmResult found = ops::lstm(in[0], {in[3], in[4], in[5], in[6]}, {in[1], in[2]}, layout);
  EXPECT_LT(lstm_distance(found.hidden, lstm_tensor(golden["output"])), 1e-12);
  EXPECT_LT(lstm_distance(found.last.hidden, lstm_tensor(golden["last_hidden"])), 1e-12);
  EXPECT_LT(lstm_distance(found.last.cell, lstm_tensor(golden["last_cell"])), 1e-12);
  const Json& weights = golden["weights"];
  const std::vector<Tensor> gradient = gradients(
      {found.hidden, found.last.hidden, found.last.cell}, in,
      {lstm_tensor(weights["output"]), lstm_tensor(weights["last_hidden"]), lstm_tensor(weights["last_cell"])});
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_LT(lstm_distance(gradient[i], lstm_tensor(golden["gradient"][names[i]])), 1e-12) << names[i];
}

/// One sequence, equal lengths, unordered different lengths, a single position each, and empty sequences.
const std::vector<std::vector<int64_t>> kLstmLayouts = {{7}, {4, 4, 4}, {2, 9, 1, 5}, {1, 1, 1}, {0, 3, 0, 6, 0}};

TEST(Lstm, EqualsALoopOverNumbers) {
  for (const auto& lengths : kLstmLayouts) {
    for (const int64_t size : {1, 5, 19}) {
      const Ragged layout(lengths);
      const LstmInputs in(layout, 3, size);
      const ops::LstmResult expected = lstm_by_numbers(in, layout);
      const ops::LstmResult found = ops::lstm(in.x, in.weights, in.start, layout);
      EXPECT_LT(lstm_distance(found.hidden, expected.hidden), 1e-12);
      EXPECT_LT(lstm_distance(found.last.hidden, expected.last.hidden), 1e-12);
      EXPECT_LT(lstm_distance(found.last.cell, expected.last.cell), 1e-12);
    }
  }
}

TEST(Lstm, BeginsWithZerosUnlessToldOtherwise) {
  const Ragged layout({3, 5});
  LstmInputs in(layout, 2, 4);
  in.start = {at::zeros({2, 4}, at::kDouble), at::zeros({2, 4}, at::kDouble)};
  EXPECT_LT(lstm_distance(ops::lstm(in.x, in.weights, {}, layout).hidden, lstm_by_numbers(in, layout).hidden), 1e-12);
}

TEST(Lstm, ContinuesWhereASequenceWasCut) {
  const Ragged whole({5, 4}), first({2, 3}), second({3, 1});
  const LstmInputs in(whole, 2, 4);
  const ops::LstmResult expected = lstm_by_numbers(in, whole);
  const auto rows = [&](std::vector<int64_t> ids) { return at::tensor(ids, at::kLong); };
  const Tensor of_first = rows({0, 1, 5, 6, 7}), of_second = rows({2, 3, 4, 8});
  const ops::LstmResult begun = ops::lstm(in.x.index_select(0, of_first), in.weights, in.start, first);
  const ops::LstmResult ended = ops::lstm(in.x.index_select(0, of_second), in.weights, begun.last, second);
  EXPECT_LT(lstm_distance(begun.hidden, expected.hidden.index_select(0, of_first)), 1e-12);
  EXPECT_LT(lstm_distance(ended.hidden, expected.hidden.index_select(0, of_second)), 1e-12);
  EXPECT_LT(lstm_distance(ended.last.cell, expected.last.cell), 1e-12);
}

TEST(Lstm, WithoutPositionsKeepsItsState) {
  const Ragged layout({0, 0});
  const LstmInputs in(layout, 2, 4);
  const ops::LstmResult found = ops::lstm(in.x, in.weights, in.start, layout);
  EXPECT_EQ(found.hidden.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_TRUE(at::equal(found.last.hidden, in.start.hidden));
  EXPECT_TRUE(at::equal(found.last.cell, in.start.cell));
}

/// Compares values, gradients for a random cotangent (without and with a graph), and Hessian-vector products.
void expect_gradients_of_torch(const testing::TensorFunction& f, const testing::TensorFunction& torch,
                               const std::vector<Tensor>& inputs) {
  const auto of = [&](const testing::TensorFunction& function) {
    std::vector<Tensor> leaves;
    for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_());
    const Tensor y = function(leaves)[0];
    std::vector<Tensor> all = {y};
    const Tensor w = testing::random_tensor(y.sizes(), 71);
    for (const Tensor& first : gradients({y}, leaves, {w}, /*create_graph=*/false, /*retain_graph=*/true))
      all.push_back(first);
    const std::vector<Tensor> kept = gradients({y}, leaves, {w}, /*create_graph=*/true);
    all.insert(all.end(), kept.begin(), kept.end());
    std::vector<Tensor> directions;
    for (const Tensor& each : kept) directions.push_back(testing::random_tensor(each.sizes(), 72 + directions.size()));
    for (const Tensor& second : gradients(kept, leaves, directions)) all.push_back(second);
    return all;
  };
  const std::vector<Tensor> found = of(f), expected = of(torch);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double scale = std::max(1.0, expected[i].detach().abs().max().item<double>());
    EXPECT_LT(lstm_distance(found[i], expected[i]), 1e-12 * scale) << "result " << i;
  }
}

TEST(Lstm, DerivesAsLibTorchDoes) {
  for (const auto& lengths : kLstmLayouts) {
    for (const int64_t size : {1, 8, 19}) {
      const Ragged layout(lengths);
      SCOPED_TRACE(::testing::Message() << layout.sequences() << " sequences, " << layout.tokens() << " tokens, "
                                        << size);
      expect_gradients_of_torch(
          [&](const std::vector<Tensor>& in) {
            return std::vector<Tensor>{testing::flattened(testing::lstm_of(in, layout))};
          },
          [&](const std::vector<Tensor>& in) {
            return std::vector<Tensor>{testing::flattened(testing::lstm_by_torch(in, layout))};
          },
          testing::lstm_inputs(layout, 3, size));
    }
  }
}

TEST(Lstm, TellsApartInputsThatAreOneTensor) {
  const Ragged layout({3, 1, 4});
  const auto inputs = [&](const std::vector<Tensor>& in) {  // the two biases are one tensor, and the two states
    return std::vector<Tensor>{in[0], in[1], in[2], in[3], in[3], in[4], in[4]};
  };
  const std::vector<Tensor> all = testing::lstm_inputs(layout, 2, 3);
  expect_gradients_of_torch(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{testing::flattened(testing::lstm_of(inputs(in), layout))};
      },
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{testing::flattened(testing::lstm_by_torch(inputs(in), layout))};
      },
      {all[0], all[1], all[2], all[3], all[5]});
}

TEST(Lstm, DerivesByWhatIsAskedForAlone) {
  const Ragged layout({3, 5});
  for (size_t wanted = 0; wanted < 7; ++wanted) {
    const auto of = [&](const auto& function, bool graph) {
      std::vector<Tensor> in = testing::lstm_inputs(layout, 2, 3);
      in[wanted].requires_grad_();
      const Tensor y = testing::flattened(function(in, layout));
      const Tensor first = gradients({y.square().sum()}, {in[wanted]}, {}, graph)[0];
      return graph ? gradients({first.square().sum()}, {in[wanted]}, {})[0] : first;
    };
    for (const bool graph : {false, true}) {
      const Tensor expected = of(testing::lstm_by_torch, graph);
      EXPECT_LT(lstm_distance(of(testing::lstm_of, graph), expected), 1e-11 * (1 + expected.abs().max().item<double>()))
          << wanted;
    }
  }
}

TEST(Lstm, ReadsTensorsThatAreNotContiguous) {
  const Ragged layout({4, 2, 4});
  const std::vector<Tensor> plain = testing::lstm_inputs(layout, 3, 5);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    std::vector<Tensor> dense, spread;
    for (const Tensor& each : plain) {
      dense.push_back(each.to(type).requires_grad_());
      // Every second column of a column-major matrix.
      const Tensor wide = at::zeros({2 * each.size(-1), each.dim() == 2 ? each.size(0) : 1}, type).t();
      const Tensor view = wide.slice(1, 0, c10::nullopt, 2);
      view.copy_(each.dim() == 2 ? each : each.unsqueeze(0));
      spread.push_back((each.dim() == 2 ? view : view[0]).detach().requires_grad_());
      ASSERT_TRUE(each.size(-1) == 1 || !spread.back().is_contiguous());
    }
    const auto of = [&](const std::vector<Tensor>& in) {
      const ops::LstmResult result = testing::lstm_of(in, layout);
      const Tensor weights = testing::random_tensor({5, layout.tokens()}, 9).to(type).t();
      std::vector<Tensor> all = gradients({result.hidden, result.last.cell.sum()}, in, {weights, at::ones({}, type)});
      all.push_back(testing::flattened(result));
      return all;
    };
    const std::vector<Tensor> found = of(spread), expected = of(dense);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LT(lstm_distance(found[i], expected[i]), type == at::kFloat ? 1e-5 : 1e-13) << i;
  }
}

TEST(Lstm, TrainsWithoutSlowPaths) {
  const test::FallbackCounter fallbacks;
  const Ragged layout({5, 5, 5});
  std::vector<Tensor> in;
  for (const Tensor& each : testing::lstm_inputs(layout, 4, 6)) in.push_back(each.to(at::kFloat).requires_grad_());
  const ops::LstmResult result = testing::lstm_of(in, layout);
  gradients({result.hidden, result.last.hidden}, in, {at::ones_like(result.hidden), at::ones_like(result.last.hidden)});
  EXPECT_TRUE(fallbacks.counts().empty());
}

TEST(Lstm, InBfloat16HasNoSecondDerivative) {
  ops::MatrixPrecision bfloat16(ops::Precision::bfloat16);
  const ops::PrecisionGuard guard(bfloat16);
  const Ragged layout({2});
  std::vector<Tensor> in;
  for (const Tensor& each : testing::lstm_inputs(layout, 2, 3)) in.push_back(each.to(at::kFloat).requires_grad_());
  EXPECT_THROW(
      {
        const Tensor y = testing::flattened(testing::lstm_of(in, layout));
        gradients({y.sum()}, in, {}, /*create_graph=*/true);
      },
      Error);
}

TEST(Lstm, NanReachesAllThatDependsOnIt) {
  const Ragged layout({4, 3});
  const LstmInputs in(layout, 2, 3);
  in.x[1][0] = std::numeric_limits<double>::quiet_NaN();
  const ops::LstmResult found = ops::lstm(in.x, in.weights, in.start, layout);
  for (int64_t t = 0; t < 7; ++t) EXPECT_EQ(found.hidden[t].isnan().all().item<bool>(), t >= 1 && t < 4) << t;
  EXPECT_TRUE(found.last.cell[0].isnan().all().item<bool>());
  EXPECT_FALSE(found.last.cell[1].isnan().any().item<bool>());
}

TEST(Lstm, RefusesShapesThatDoNotFit) {
  const Ragged layout({2, 3});
  const LstmInputs in(layout, 2, 3);
  EXPECT_THROW(ops::lstm(in.x, in.weights, in.start, Ragged({2, 2})), Error);
  EXPECT_THROW(ops::lstm(in.x.narrow(1, 0, 1), in.weights, in.start, layout), Error);
  EXPECT_THROW(ops::lstm(in.x, in.weights, {in.start.hidden.narrow(0, 0, 1), in.start.cell}, layout), Error);
  EXPECT_THROW(ops::lstm(in.x, in.weights, {in.start.hidden, {}}, layout), Error);
  ops::LstmWeights wrong = in.weights;
  wrong.hidden_bias = wrong.hidden_bias.narrow(0, 0, 3);
  EXPECT_THROW(ops::lstm(in.x, wrong, in.start, layout), Error);
}

}  // namespace
}  // namespace plumb
