// The kernel operations compared with their references, mostly in float64: values, gradients, Hessian-vector products.
#include "plumb/ops/implementations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "ops/derivatives.h"
#include "ops/lstm_peer.h"
#include "plumb/base/error.h"
#include "plumb/ops/activation.h"
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

void expect_same(const Function& kernels, const Function& composed, const Tensors& inputs, bool second = true) {
  const auto of = [&](const Function& f) {
    return testing::derivatives([&](const Tensors& in) { return Tensors{f(in)}; }, inputs, second);
  };
  const Tensors found = of(kernels), expected = of(composed);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    expect_close(found[i], expected[i], testing::derivative_name(i, inputs.size()));
  }
}

const std::vector<Ragged>& layouts() {
  static const std::vector<Ragged> all = {Ragged({1}), Ragged({5, 1, 9}), Ragged({60, 2, 3, 17})};
  return all;
}
constexpr HeadShape kHeadShapes[] = {{1, 1, 1}, {3, 3, 5}, {4, 2, 8}, {6, 1, 3}};

TEST(Reference, SiluAndGelu) {
  for (const int64_t width : {1, 37, 1030}) {
    const Tensors inputs = {random_tensor({40, width}, 1, 2.0)};
    expect_same([](const Tensors& x) { return ops::silu(x[0]); }, [](const Tensors& x) { return at::silu(x[0]); },
                inputs);
    expect_same([](const Tensors& x) { return ops::gelu_tanh(x[0]); },
                [](const Tensors& x) { return at::gelu(x[0], "tanh"); }, inputs);
    // Rows that do not lie side by side.
    expect_same([](const Tensors& x) { return ops::silu(x[0].t()); },
                [](const Tensors& x) { return at::silu(x[0].t()); }, inputs);
  }
}

TEST(Reference, SelfAttention) {
  for (const Ragged& layout : layouts()) {
    for (const HeadShape& shape : kHeadShapes) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{} heads, {} key-value heads, {} tokens", shape.heads, shape.kv_heads, layout.tokens()));
        expect_same([&](const Tensors& x) { return fused::self_attention(x[0], layout, shape, causal); },
                    [&](const Tensors& x) { return reference::self_attention(x[0], layout, shape, causal); },
                    {random_tensor({layout.tokens(), shape.width() + 2 * shape.kv_width()}, 1)});
      }
    }
  }
}

TEST(Reference, CrossAttention) {
  const Ragged queries({3, 1, 50, 8}), keys({2, 60, 1, 7});
  for (const HeadShape& shape : kHeadShapes) {
    expect_same(
        [&](const Tensors& x) { return fused::cross_attention(x[0], x[1], queries, keys, shape); },
        [&](const Tensors& x) { return reference::cross_attention(x[0], x[1], queries, keys, shape); },
        {random_tensor({queries.tokens(), shape.width()}, 1), random_tensor({keys.tokens(), 2 * shape.kv_width()}, 2)});
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
  std::vector<int64_t> labels;
  std::vector<double> some_weights;
  for (int64_t i = 0; i < 150; ++i) {
    labels.push_back(i * 7 % 23);
    some_weights.push_back(static_cast<double>(i % 3) / 2);
  }
  const Tensor logits = random_tensor({150, 23}, 1);
  const Tensors factors = {random_tensor({150, 4}, 2), random_tensor({23, 4}, 3), random_tensor({23}, 4)};
  for (const std::vector<double>& weights : {std::vector<double>{}, some_weights}) {
    for (const double smoothing : {0.0, 0.1}) {
      expect_same(
          [&](const Tensors& x) { return fused::cross_entropy(x[0], labels, weights, smoothing, 0.3).loss; },
          [&](const Tensors& x) { return reference::cross_entropy(x[0], labels, weights, smoothing, 0.3).loss; },
          {logits});
      EXPECT_NEAR(fused::cross_entropy(logits, labels, weights, smoothing, 0.3).nll,
                  reference::cross_entropy(logits, labels, weights, smoothing, 0.3).nll, 1e-10);
      expect_same(
          [&](const Tensors& x) {
            return fused::linear_cross_entropy(x[0], x[1], x[2], labels, weights, smoothing, 0.3).loss;
          },
          [&](const Tensors& x) {
            return reference::linear_cross_entropy(x[0], x[1], x[2], labels, weights, smoothing, 0.3).loss;
          },
          factors, /*second=*/false);
    }
  }
}

TEST(Reference, DropoutHasTheSameMask) {
  for (const auto& [seed, stream] : {std::pair<uint64_t, uint64_t>{1, 2}, {0xFEDCBA9876543210, 0x89ABCDEF01234567}}) {
    for (const double p : {0.1, 0.5, 1.0}) {
      for (const int64_t width : {1, 5, 1030}) {
        const ops::DropoutKey key{seed, stream};
        const Tensors inputs = {random_tensor({3, width}, 1), random_tensor({3, width}, 2)};
        EXPECT_TRUE(
            fused::add_dropout(Tensor(), inputs[1], p, key).equal(reference::add_dropout(Tensor(), inputs[1], p, key)));
        expect_same([&](const Tensors& x) { return fused::add_dropout(x[0], x[1].square(), p, key); },
                    [&](const Tensors& x) { return reference::add_dropout(x[0], x[1].square(), p, key); }, inputs);
      }
    }
  }
}

TEST(Reference, Embedding) {
  const std::vector<int64_t> ids = {4, 0, 4, 4, 6, 1};
  expect_same([&](const Tensors& x) { return fused::embedding(x[0].square(), ids, 1.5); },
              [&](const Tensors& x) { return reference::embedding(x[0].square(), ids, 1.5); },
              {random_tensor({7, 5}, 1)});
}

TEST(Reference, Norms) {
  const Tensors inputs = {random_tensor({70, 19}, 1) + 0.3, random_tensor({19}, 2), random_tensor({19}, 3)};
  expect_same([](const Tensors& x) { return fused::layer_norm(x[0], x[1], x[2], 1e-3); },
              [](const Tensors& x) { return reference::layer_norm(x[0], x[1], x[2], 1e-3); }, inputs);
  expect_same([](const Tensors& x) { return fused::rms_norm(x[0], x[1], 1e-3); },
              [](const Tensors& x) { return reference::rms_norm(x[0], x[1], 1e-3); }, {inputs[0], inputs[1]});
}

TEST(Reference, Products) {
  for (const Activation activation : {Activation::none, Activation::relu}) {
    expect_same([&](const Tensors& x) { return ops::linear(x[0], x[1], x[2], activation); },
                [&](const Tensors& x) { return reference::linear(x[0], x[1], x[2], activation); },
                {random_tensor({30, 7}, 1), random_tensor({9, 7}, 2), random_tensor({9}, 3)});
  }
  expect_same([](const Tensors& x) { return fused::matrix_product(x[0], x[1], true, false); },
              [](const Tensors& x) { return reference::matrix_product(x[0], x[1], true, false); },
              {random_tensor({30, 7}, 1), random_tensor({30, 9}, 2)});
  expect_same([](const Tensors& x) { return fused::column_sums(x[0].square()); },
              [](const Tensors& x) { return reference::column_sums(x[0].square()); }, {random_tensor({300, 7}, 1)});
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

TEST(Reference, Lstm) {
  for (const Ragged& layout :
       {Ragged({1}), Ragged({7}), Ragged({1, 1, 1}), Ragged({6, 6, 6}), Ragged({0, 5, 1, 9, 0})}) {
    for (const int64_t size : {1, 5, 19}) {
      SCOPED_TRACE(fmt::format("{} sequences, {} tokens, size {}", layout.sequences(), layout.tokens(), size));
      for (const bool second : {false, true}) {
        expect_same(
            [&](const Tensors& x) {
              return testing::flattened(fused::lstm(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, layout));
            },
            [&](const Tensors& x) {
              return testing::flattened(reference::lstm(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, layout));
            },
            testing::lstm_inputs(layout, 3, size), second);
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

TEST(Reference, Updates) {
  const auto pieces = [](uint64_t seed) {
    return Tensors{random_tensor({40, 30}, seed), random_tensor({7}, seed + 1), random_tensor({40000}, seed + 2)};
  };
  Tensors gradients = pieces(1);
  gradients[0] = random_tensor({30, 40}, 1).t();  // not contiguous
  const auto agree = [&]<typename Update>(const std::string& name, const Update& rule) {
    ops::UpdatedPieces<Update::kVectors> found, expected;
    for (size_t k = 0; k < found.size(); ++k) {
      for (const Tensor& piece : pieces(10 * (k + 1))) {
        found[k].push_back(piece.abs());
        expected[k].push_back(piece.abs());
      }
    }
    const std::vector<Update> rules(gradients.size(), rule);
    fused::update(rules, gradients, found);
    reference::update(rules, gradients, expected);
    for (size_t k = 0; k < found.size(); ++k) {
      for (size_t i = 0; i < gradients.size(); ++i)
        expect_close(found[k][i], expected[k][i], fmt::format("{}: vector {} of piece {}", name, k, i), 1e-14);
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

  const double expected = reference::sum_of_squares(gradients);
  EXPECT_NEAR(fused::sum_of_squares(gradients), expected, 1e-12 * expected);
}

}  // namespace
}  // namespace plumb
