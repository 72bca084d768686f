// The kernel operations compared with their references: values, gradients and Hessian-vector products, in float64 and
// float32. The references are compared with formulas and differences in ops/reference_test.cpp, and the kernels
// themselves with formulas on every instruction set in the files beside this one.
#include "plumb/ops/implementations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/derivatives.h"
#include "ops/lstm_peer.h"
#include "plumb/base/error.h"
#include "plumb/ops/activation.h"
#include "plumb/ops/kernels/instruction_set.h"
#include "plumb/ops/precision.h"

namespace plumb {
namespace {

namespace fused = ops::fused;
namespace reference = ops::reference;
using ops::Activation;
using ops::HeadShape;
using testing::random_tensor;
using testing::Tensors;
using Function = std::function<Tensor(const Tensors&)>;

void expect_close(const Tensor& found, const Tensor& expected, const std::string& what, double tolerance = 1e-12) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  if (expected.numel() == 0) return;
  const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance * scale) << what;
}

Tensors derivatives_of(const Function& f, const Tensors& inputs, bool second) {
  return testing::derivatives([&](const Tensors& in) { return Tensors{f(in)}; }, inputs, second);
}

/// In float64.
void expect_same_wide(const Function& kernels, const Function& composed, const Tensors& inputs, bool second = true) {
  const Tensors found = derivatives_of(kernels, inputs, second), expected = derivatives_of(composed, inputs, second);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    expect_close(found[i], expected[i], testing::derivative_name(i, inputs.size()));
}

/// The kernels in both types, on the same numbers; in float32 to 1e-5.
void expect_same(const Function& kernels, const Function& composed, const Tensors& inputs, bool second = true) {
  Tensors narrow, wide;
  for (const Tensor& input : inputs) {
    narrow.push_back(input.to(at::kFloat));
    wide.push_back(narrow.back().to(at::kDouble));
  }
  const Tensors expected = derivatives_of(composed, wide, second);
  const Tensors found = derivatives_of(kernels, wide, second), single = derivatives_of(kernels, narrow, second);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(single.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string what = testing::derivative_name(i, inputs.size());
    expect_close(found[i], expected[i], what);
    ASSERT_EQ(single[i].scalar_type(), at::kFloat);
    const double largest = expected[i].abs().max().item<double>();
    const double error = (single[i].to(at::kDouble) - expected[i]).abs().max().item<double>();
    EXPECT_LE(error, 1e-5 * largest) << what << " in float32";
  }
}

/// Batches: one token, one sentence, sentences of one token, mixed lengths, one sentence much longer than the rest.
std::vector<Ragged> layouts(uint64_t seed) {
  Random random(seed, "layouts");
  std::vector<int64_t> lengths;
  for (int i = 0; i < 9; ++i) lengths.push_back(1 + static_cast<int64_t>(random.below(12)));
  std::vector<int64_t> uneven = lengths;
  uneven[4] = 211;
  return {Ragged({1}), Ragged({17}), Ragged({1, 1, 1, 1, 1}), Ragged(lengths), Ragged(uneven)};
}
constexpr HeadShape kHeadShapes[] = {{1, 1, 1}, {3, 3, 7}, {2, 2, 33}, {6, 2, 5}, {4, 1, 33}};

std::string described(const HeadShape& shape) {
  return fmt::format("{} heads and {} key-value heads of {}", shape.heads, shape.kv_heads, shape.size);
}

TEST(Reference, SiluAndGelu) {
  for (const int64_t width : {1, 37, 1030}) {
    const Tensors inputs = {random_tensor({40, width}, 1, 2.0)};
    expect_same_wide([](const Tensors& x) { return ops::silu(x[0]); }, [](const Tensors& x) { return at::silu(x[0]); },
                     inputs);
    expect_same_wide([](const Tensors& x) { return ops::gelu_tanh(x[0]); },
                     [](const Tensors& x) { return at::gelu(x[0], "tanh"); }, inputs);
    // Rows that do not lie side by side.
    expect_same_wide([](const Tensors& x) { return ops::silu(x[0].t()); },
                     [](const Tensors& x) { return at::silu(x[0].t()); }, inputs);
  }
}

TEST(Reference, SelfAttention) {
  for (const Ragged& layout : layouts(1)) {
    for (const HeadShape& shape : kHeadShapes) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(fmt::format("{} sentences of up to {}, {}{}", layout.sequences(), layout.longest(),
                                 described(shape), causal ? ", causal" : ""));
        expect_same([&](const Tensors& x) { return fused::self_attention(x[0], layout, shape, causal); },
                    [&](const Tensors& x) { return reference::self_attention(x[0], layout, shape, causal); },
                    {random_tensor({layout.tokens(), shape.width() + 2 * shape.kv_width()}, 5)});
      }
    }
  }
}

TEST(Reference, CrossAttention) {
  const std::vector<Ragged> queries = layouts(1), keys = layouts(2);
  for (size_t i = 0; i < queries.size(); ++i) {
    for (const HeadShape& shape : kHeadShapes) {
      SCOPED_TRACE(fmt::format("batch {}, {}", i, described(shape)));
      expect_same([&](const Tensors& x) { return fused::cross_attention(x[0], x[1], queries[i], keys[i], shape); },
                  [&](const Tensors& x) { return reference::cross_attention(x[0], x[1], queries[i], keys[i], shape); },
                  {random_tensor({queries[i].tokens(), shape.width()}, 5),
                   random_tensor({keys[i].tokens(), 2 * shape.kv_width()}, 6)});
    }
  }
}

TEST(Reference, CachedAttention) {
  for (const HeadShape& shape : kHeadShapes) {
    ops::CachedKeys cache;
    const auto append = [&](const Ragged& layout, uint64_t seed) {
      cache.append(random_tensor({layout.tokens(), 2 * shape.kv_width()}, seed), layout);
    };
    append(Ragged({4, 1, 9}), 1);
    cache.reorder({2, 0, 0, 1});
    append(Ragged({1, 0, 3, 1}), 2);
    const Ragged layout({2, 0, 3, 1});
    const Tensor query = random_tensor({6, shape.width()}, 3);
    expect_close(fused::cached_attention(query, layout, cache, shape),
                 reference::cached_attention(query, layout, cache, shape), "cached attention");
  }
}

TEST(Reference, CrossEntropy) {
  // The last two: more than one chunk of tokens.
  for (const auto& [tokens, d, vocabulary] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 3, 5}, {37, 17, 101}, {300, 9, 16411}, {1100, 5, 31}}) {
    Random random(3, "labels");
    std::vector<int64_t> labels;
    std::vector<double> some_weights;  // 0, 0.5 or 1; the last is 1.5, so that not all are 0
    for (int64_t i = 0; i < tokens; ++i) {
      labels.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary))));
      some_weights.push_back(i + 1 == tokens ? 1.5 : static_cast<double>(random.below(3)) / 2);
    }
    const double scale = 1.0 / static_cast<double>(tokens);
    for (const bool weighted : {false, true}) {
      const std::vector<double> weights = weighted ? some_weights : std::vector<double>{};
      // The weighted cases also have a bias.
      Tensors inputs = {random_tensor({tokens, d}, 1), random_tensor({vocabulary, d}, 2)};
      if (weighted) inputs.push_back(random_tensor({vocabulary}, 3));
      const auto bias = [&](const Tensors& x) { return weighted ? x[2] : Tensor(); };
      for (const double smoothing : {0.0, 0.125}) {
        SCOPED_TRACE(fmt::format("{} tokens, vocabulary {}, ε {}{}", tokens, vocabulary, smoothing,
                                 weighted ? ", weighted" : ""));
        const Function composed = [&](const Tensors& x) {
          return reference::linear_cross_entropy(x[0], x[1], bias(x), labels, weights, smoothing, scale).loss;
        };
        expect_same(
            [&](const Tensors& x) {
              return fused::cross_entropy(ops::linear(x[0], x[1], bias(x)), labels, weights, smoothing, scale).loss;
            },
            composed, inputs);
        expect_same(
            [&](const Tensors& x) {
              return fused::linear_cross_entropy(x[0], x[1], bias(x), labels, weights, smoothing, scale).loss;
            },
            composed, inputs, /*second=*/false);
        const Tensor logits = reference::linear(inputs[0], inputs[1], bias(inputs), Activation::none);
        EXPECT_NEAR(fused::cross_entropy(logits, labels, weights, smoothing, scale).nll,
                    reference::cross_entropy(logits, labels, weights, smoothing, scale).nll, 1e-10);
      }
    }
  }
}

TEST(Reference, DropoutHasTheSameMask) {
  for (const auto& [seed, stream] : {std::pair<uint64_t, uint64_t>{1, 2}, {0xFEDCBA9876543210, 0x89ABCDEF01234567}}) {
    for (const double p : {0.1, 0.5, 1.0}) {
      for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{3, 1}, {3, 5}, {3, 1030}, {211, 67}}) {
        const ops::DropoutKey key{seed, stream};
        const Tensors inputs = {random_tensor({rows, width}, 1), random_tensor({rows, width}, 2)};
        EXPECT_TRUE(
            fused::add_dropout(Tensor(), inputs[1], p, key).equal(reference::add_dropout(Tensor(), inputs[1], p, key)));
        const auto compare = p < 1 && width > 1 ? expect_same : expect_same_wide;  // a mask may keep nothing
        compare([&](const Tensors& x) { return fused::add_dropout(x[0], x[1].square(), p, key); },
                [&](const Tensors& x) { return reference::add_dropout(x[0], x[1].square(), p, key); }, inputs, true);
      }
    }
  }
}

TEST(Reference, Norms) {
  constexpr double kEps = double{1e-2F};
  for (const int64_t tokens : {1, 23, 301}) {
    for (const int64_t width : {2, 19, 131, 512}) {
      SCOPED_TRACE(fmt::format("{} tokens of {}", tokens, width));
      const Tensors inputs = {random_tensor({tokens, width}, 1) + 0.3, random_tensor({width}, 2),
                              random_tensor({width}, 3)};
      // Followed by a square, so that the second derivative with respect to the output is not zero.
      expect_same([](const Tensors& x) { return fused::layer_norm(x[0], x[1], x[2], kEps).square(); },
                  [](const Tensors& x) { return reference::layer_norm(x[0], x[1], x[2], kEps).square(); }, inputs);
      expect_same([](const Tensors& x) { return fused::rms_norm(x[0], x[1], kEps).square(); },
                  [](const Tensors& x) { return reference::rms_norm(x[0], x[1], kEps).square(); },
                  {inputs[0], inputs[1]});
    }
  }
}

TEST(Reference, Linear) {
  for (const auto& [tokens, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {1, 17, 65}, {37, 65, 17}, {301, 33, 129}, {64, 128, 1}}) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      for (const bool with_bias : {false, true}) {
        SCOPED_TRACE(fmt::format("{}: {} -> {}{}", tokens, in, out, activation == Activation::relu ? " relu" : ""));
        Tensors inputs = {random_tensor({tokens, in}, 1), random_tensor({out, in}, 2)};
        if (with_bias) inputs.push_back(random_tensor({out}, 3));
        const auto bias = [&](const Tensors& x) { return with_bias ? x[2] : Tensor(); };
        expect_same([&](const Tensors& x) { return ops::linear(x[0], x[1], bias(x), activation); },
                    [&](const Tensors& x) { return reference::linear(x[0], x[1], bias(x), activation); }, inputs);
      }
    }
  }
}

TEST(Reference, Products) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      expect_same([&](const Tensors& x) { return fused::matrix_product(x[0], x[1], ta, tb); },
                  [&](const Tensors& x) { return reference::matrix_product(x[0], x[1], ta, tb); },
                  {ta ? random_tensor({67, 35}, 1) : random_tensor({35, 67}, 1),
                   tb ? random_tensor({129, 67}, 2) : random_tensor({67, 129}, 2)});
    }
  }
  expect_same_wide([](const Tensors& x) { return fused::column_sums(x[0].square()); },
                   [](const Tensors& x) { return reference::column_sums(x[0].square()); },
                   {random_tensor({300, 7}, 1)});
}

TEST(Reference, ProductsWithoutAGraph) {
  const Tensor a = random_tensor({18, 33}, 1).to(at::kFloat), b = random_tensor({33, 21}, 2).to(at::kFloat);
  const Tensor bias = random_tensor({21}, 3).to(at::kFloat), c = random_tensor({18, 21}, 4).to(at::kFloat);
  const auto expect = [&](const ops::GemmOptions& options, const Tensor& left, const Tensor& right) {
    ops::GemmOptions with = options;
    if (options.accumulate_into.defined()) with.accumulate_into = options.accumulate_into.clone();
    const Tensor expected = reference::gemm(left, right, with);
    expect_close(fused::gemm(left, right, options), expected, "product", 1e-5);
  };
  expect({.bias = bias, .relu = true}, a, b);
  expect({.accumulate_into = c}, a, b);
  expect({.transpose_a = true, .transpose_b = true}, a.t().contiguous(), b.t().contiguous());
  EXPECT_TRUE(fused::to_bfloat16(a).equal(a.to(at::kBFloat16)));
}

// Factors and biases that are columns of a matrix, and transposed operands.
TEST(Reference, TensorsThatAreNotContiguous) {
  const auto column = [](const Tensor& x, int64_t i) { return x.select(1, i); };
  const Tensors rows = {random_tensor({23, 19}, 1), random_tensor({19, 2}, 2)};
  expect_same(
      [&](const Tensors& x) { return fused::layer_norm(x[0], column(x[1], 0), column(x[1], 1), 1e-2).square(); },
      [&](const Tensors& x) { return reference::layer_norm(x[0], column(x[1], 0), column(x[1], 1), 1e-2).square(); },
      rows);
  expect_same([&](const Tensors& x) { return fused::rms_norm(x[0], column(x[1], 1), 1e-2).square(); },
              [&](const Tensors& x) { return reference::rms_norm(x[0], column(x[1], 1), 1e-2).square(); }, rows);
  const Tensors layer = {random_tensor({17, 23}, 1), random_tensor({17, 31}, 2), random_tensor({31, 2}, 3)};
  expect_same([&](const Tensors& x) { return ops::linear(x[0].t(), x[1].t(), column(x[2], 1)).square(); },
              [&](const Tensors& x) {
                return reference::linear(x[0].t(), x[1].t(), column(x[2], 1), Activation::none).square();
              },
              layer);
  const std::vector<int64_t> labels(23, 5);
  expect_same(
      [&](const Tensors& x) {
        return fused::linear_cross_entropy(x[0].t(), x[1].t(), column(x[2], 1), labels, {}, 0.1, 0.5).loss;
      },
      [&](const Tensors& x) {
        return reference::linear_cross_entropy(x[0].t(), x[1].t(), column(x[2], 1), labels, {}, 0.1, 0.5).loss;
      },
      layer, /*second=*/false);
}

TEST(Reference, Lstm) {
  std::vector<Ragged> all = layouts(3);
  all.back() = Ragged({3, 29, 0, 8});
  all.emplace_back(std::vector<int64_t>{9, 9, 9, 9});
  for (const Ragged& layout : all) {
    for (const auto& [in, size] : {std::pair<int64_t, int64_t>{1, 6}, {13, 21}}) {
      SCOPED_TRACE(fmt::format("{} sequences, {} tokens, {} -> {}", layout.sequences(), layout.tokens(), in, size));
      for (const bool second : {false, true}) {
        expect_same(
            [&](const Tensors& x) {
              return testing::flattened(fused::lstm(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, layout));
            },
            [&](const Tensors& x) {
              return testing::flattened(reference::lstm(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, layout));
            },
            testing::lstm_inputs(layout, in, size), second);
      }
    }
  }
}

TEST(Reference, LstmInBfloat16) {
  const Ragged layout({6, 2, 6, 5});
  Tensors inputs;
  for (const Tensor& input : testing::lstm_inputs(layout, 11, 17)) inputs.push_back(input.to(at::kFloat));
  ops::MatrixPrecision bfloat16(ops::Precision::bfloat16);
  const ops::PrecisionGuard guard(bfloat16);
  const auto of = [&](const auto& f) {
    return testing::derivatives(
        [&](const Tensors& x) {
          return Tensors{testing::flattened(f(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, layout))};
        },
        inputs, /*second=*/false);
  };
  try {
    const Tensors found = of(fused::lstm), expected = of(reference::lstm);
    for (size_t i = 0; i < found.size(); ++i) {
      // A sum in a different order may round to a neighboring bfloat16 number, which differs by 2⁻⁸.
      expect_close(found[i], expected[i], testing::derivative_name(i, inputs.size()), 4e-3);
    }
  } catch (const plumb::Error&) {  // this processor lacks such products
  }
}

TEST(Reference, PackedWeights) {
  const auto floats = [](at::IntArrayRef shape, uint64_t seed) { return random_tensor(shape, seed).to(at::kFloat); };
  Tensor x = floats({9, 64}, 1);
  x[3].zero_();
  const Tensor weight = floats({20, 64}, 2), bias = floats({20}, 3);
  expect_close(fused::pack(weight, ops::Precision::float32)->multiply(x, bias, true),
               reference::pack(weight, ops::Precision::float32)->multiply(x, bias, true), "float32", 1e-5);
  for (const ops::Precision precision : {ops::Precision::bfloat16, ops::Precision::int8}) {
    try {
      expect_close(fused::pack(weight, precision)->multiply(x, bias, false),
                   reference::pack(weight, precision)->multiply(x, bias, false), "rounded", 1e-5);
    } catch (const plumb::Error&) {  // this processor lacks such products
    }
  }
}

TEST(Reference, TopScores) {
  Tensor logits = random_tensor({6, 40}, 1);
  logits[1].narrow(0, 5, 34).fill_(-std::numeric_limits<double>::infinity());
  logits[2][7] = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t k : {1, 5, 100}) {
    const ops::TopScores found = fused::top_scores(logits, k, 3, true);
    const ops::TopScores expected = reference::top_scores(logits, k, 3, true);
    ASSERT_EQ(found.k, expected.k);
    EXPECT_EQ(found.ids, expected.ids);
    for (size_t i = 0; i < found.ids.size(); ++i) {
      if (found.ids[i] < 0) continue;
      if (std::isnan(expected.scores[i])) {
        EXPECT_TRUE(std::isnan(found.scores[i])) << found.scores[i];
      } else {
        EXPECT_EQ(found.scores[i], expected.scores[i]);
      }
    }
    for (const size_t row : {0, 1, 3, 4, 5}) {
      EXPECT_NEAR(found.log_partition[row], expected.log_partition[row], 1e-13);
    }
  }
}

/// Every rule on the instruction set in use, on numbers of this type; the reference computes in float64.
void expect_updates(at::ScalarType type, double tolerance) {
  const auto pieces = [&](uint64_t seed) {
    return Tensors{random_tensor({40, 30}, seed).to(type), random_tensor({7}, seed + 1).to(type),
                   random_tensor({40000}, seed + 2).to(type)};
  };
  Tensors gradients = pieces(1), wide;
  gradients[0] = random_tensor({30, 40}, 1).to(type).t();  // not contiguous
  gradients[1].zero_();                                    // as is the first vector of this piece: Lion's sign is 0
  for (const Tensor& gradient : gradients) wide.push_back(gradient.to(at::kDouble));
  const auto agree = [&]<typename Update>(const std::string& name, const Update& rule) {
    ops::UpdatedPieces<Update::kVectors> found, expected;
    for (size_t k = 0; k < found.size(); ++k) {
      found[k] = pieces(10 * (k + 1));
      for (Tensor& piece : found[k]) piece.abs_();
      if (k == 0) found[k][1].zero_();
      for (const Tensor& piece : found[k]) expected[k].push_back(piece.to(at::kDouble, false, /*copy=*/true));
    }
    const std::vector<Update> rules(gradients.size(), rule);
    fused::update(rules, gradients, found);
    reference::update(rules, wide, expected);
    for (size_t k = 0; k < found.size(); ++k) {
      for (size_t i = 0; i < gradients.size(); ++i)
        expect_close(found[k][i], expected[k][i], fmt::format("{}: vector {} of piece {}", name, k, i), tolerance);
    }
  };
  const ops::AdamUpdate adam{0.9, 0.98, 1e-9, 0.01, 1.3, 0.001, 0.5};
  agree("Adam", adam);
  agree("SGD", ops::SgdUpdate{0.01, 0.9, 0.001, 0.5});
  agree("SGD, Nesterov", ops::SgdUpdate{0.01, 0.9, 0.001, 0.5, true});
  agree("averaged SGD", ops::AveragedUpdate{0.01, 0.001, 0.2, 0.5});
  agree("Lion", ops::LionUpdate{0.9, 0.99, 0.01, 0.001, 0.5});
  agree("Schedule-Free AdamW", ops::ScheduleFreeUpdate{0.9, 0.98, 1e-9, 0.01, 1.3, 0.001, 0.2, 0.5});
  agree("LAMB", ops::LambUpdate{adam, 0.01, true});
  agree("LAMB without ratio", ops::LambUpdate{adam, 0.01, false});

  const double expected = reference::sum_of_squares(wide);
  EXPECT_NEAR(fused::sum_of_squares(gradients), expected, 1e-12 * expected);
}

TEST(Reference, Updates) {
  for (const std::string& name : kernels::instruction_sets()) {
    SCOPED_TRACE(name);
    kernels::use_instruction_set(name);
    expect_updates(at::kDouble, 1e-14);
    expect_updates(at::kFloat, 3e-6);
  }
  kernels::use_instruction_set("");
}

}  // namespace
}  // namespace plumb
