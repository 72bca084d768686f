// float32 operations compared with composed formulas in float64: values, gradients and Hessian-vector products agree to
// 1e-5 on ragged batches of random shapes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/derivatives.h"
#include "ops/lstm_peer.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/norm.h"
#include "support/kernels.h"
#include "support/reference.h"

namespace plumb {
namespace {

using testing::derivatives;
using testing::Tensors;

/// Compares `fast` on the inputs in float32 with `reference` on the same numbers in float64.
void expect_agreement(const std::function<Tensor(const Tensors&)>& fast,
                      const std::function<Tensor(const Tensors&)>& reference, const Tensors& inputs,
                      bool second = true) {
  Tensors narrow, wide;
  for (const Tensor& input : inputs) {
    narrow.push_back(input.to(at::kFloat));
    wide.push_back(narrow.back().to(at::kDouble));
  }
  const Tensors found = derivatives([&](const Tensors& in) { return Tensors{fast(in)}; }, narrow, second);
  const Tensors expected = derivatives([&](const Tensors& in) { return Tensors{reference(in)}; }, wide, second);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].scalar_type(), at::kFloat);
    const double largest = expected[i].abs().max().item<double>();
    const double error = (found[i].to(at::kDouble) - expected[i]).abs().max().item<double>();
    EXPECT_LE(error, 1e-5 * largest) << testing::derivative_name(i, inputs.size());
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

using testing::random_tensor;

TEST(FastPath, Linear) {
  for (const auto& [tokens, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {1, 17, 65}, {37, 65, 17}, {301, 33, 129}, {64, 128, 1}}) {
    for (const bool relu : {false, true}) {
      for (const bool with_bias : {false, true}) {
        SCOPED_TRACE(::testing::Message() << tokens << ": " << in << " -> " << out << (relu ? " relu" : ""));
        Tensors inputs = {random_tensor({tokens, in}, 1), random_tensor({out, in}, 2)};
        if (with_bias) inputs.push_back(random_tensor({out}, 3));
        expect_agreement(
            [&](const Tensors& x) {
              return ops::linear(x[0], x[1], with_bias ? x[2] : Tensor(),
                                 relu ? ops::Activation::relu : ops::Activation::none);
            },
            [&](const Tensors& x) {
              Tensor y = at::mm(x[0], x[1].t());
              if (with_bias) y = y + x[2];
              return relu ? at::relu(y) : y;
            },
            inputs);
      }
    }
  }
}

TEST(FastPath, MatrixProduct) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      expect_agreement([&](const Tensors& x) { return ops::matrix_product(x[0], x[1], ta, tb); },
                       [&](const Tensors& x) { return at::mm(ta ? x[0].t() : x[0], tb ? x[1].t() : x[1]); },
                       {ta ? random_tensor({67, 35}, 1) : random_tensor({35, 67}, 1),
                        tb ? random_tensor({129, 67}, 2) : random_tensor({67, 129}, 2)});
    }
  }
}

TEST(FastPath, Norms) {
  for (const int64_t tokens : {1, 23, 301}) {
    for (const int64_t width : {2, 19, 131, 512}) {
      SCOPED_TRACE(::testing::Message() << tokens << " tokens of " << width);
      const Tensors inputs = {random_tensor({tokens, width}, 1) + 0.3, random_tensor({width}, 2),
                              random_tensor({width}, 3)};
      // Followed by a square, so that the second derivative with respect to the output is not zero.
      expect_agreement([](const Tensors& x) { return ops::layer_norm(x[0], x[1], x[2], 1e-2).square(); },
                       [](const Tensors& x) { return reference::norm(x[0], x[1], x[2], double{1e-2F}).square(); },
                       inputs);
      expect_agreement([](const Tensors& x) { return ops::rms_norm(x[0], x[1], 1e-2).square(); },
                       [](const Tensors& x) { return reference::norm(x[0], x[1], Tensor(), double{1e-2F}).square(); },
                       {inputs[0], inputs[1]});
    }
  }
}

constexpr ops::HeadShape kHeadShapes[] = {{1, 1, 1}, {3, 3, 7}, {2, 2, 33}, {6, 2, 5}, {4, 1, 33}};

std::string describe(const ops::HeadShape& shape) {
  return fmt::format("{} heads and {} key-value heads of {}", shape.heads, shape.kv_heads, shape.size);
}

TEST(FastPath, Lstm) {
  std::vector<Ragged> all = layouts(3);
  all.back() = Ragged({3, 29, 0, 8});  // LibTorch's second derivatives over 211 tokens take minutes
  all.emplace_back(std::vector<int64_t>{9, 9, 9, 9});
  for (const Ragged& layout : all) {
    for (const auto& [in, size] : {std::pair<int64_t, int64_t>{1, 6}, {13, 21}}) {
      SCOPED_TRACE(fmt::format("{} sequences, {} tokens, {} -> {}", layout.sequences(), layout.tokens(), in, size));
      for (const bool second : {false, true}) {
        expect_agreement([&](const Tensors& x) { return testing::flattened(testing::lstm_of(x, layout)); },
                         [&](const Tensors& x) { return testing::flattened(testing::lstm_by_torch(x, layout)); },
                         testing::lstm_inputs(layout, in, size), second);
      }
    }
  }
}

TEST(FastPath, SelfAttention) {
  for (const Ragged& layout : layouts(1)) {
    for (const ops::HeadShape& shape : kHeadShapes) {
      for (const bool causal : {false, true}) {
        const int64_t d = shape.width(), kv = shape.kv_width();
        SCOPED_TRACE(::testing::Message() << layout.sequences() << " sentences of up to " << layout.longest() << ", "
                                          << describe(shape) << (causal ? ", causal" : ""));
        expect_agreement([&](const Tensors& x) { return ops::self_attention(x[0], layout, shape, causal); },
                         [&](const Tensors& x) {
                           return reference::attention(x[0].narrow(1, 0, d), x[0].narrow(1, d, kv),
                                                       x[0].narrow(1, d + kv, kv), layout, layout, shape.size, causal);
                         },
                         {random_tensor({layout.tokens(), d + 2 * kv}, 5)});
      }
    }
  }
}

TEST(FastPath, CrossAttention) {
  const std::vector<Ragged> queries = layouts(1), keys = layouts(2);
  for (size_t i = 0; i < queries.size(); ++i) {
    for (const ops::HeadShape& shape : kHeadShapes) {
      const int64_t d = shape.width(), kv = shape.kv_width();
      SCOPED_TRACE(::testing::Message() << "batch " << i << ", " << describe(shape));
      expect_agreement([&](const Tensors& x) { return ops::cross_attention(x[0], x[1], queries[i], keys[i], shape); },
                       [&](const Tensors& x) {
                         return reference::attention(x[0], x[1].narrow(1, 0, kv), x[1].narrow(1, kv, kv), queries[i],
                                                     keys[i], shape.size, false);
                       },
                       {random_tensor({queries[i].tokens(), d}, 5), random_tensor({keys[i].tokens(), 2 * kv}, 6)});
    }
  }
}

TEST(FastPath, CrossEntropyInBothForms) {
  PLUMB_REQUIRE_KERNELS();
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
    for (const bool weighted : {false, true}) {
      const std::vector<double> weights = weighted ? some_weights : std::vector<double>{};
      for (const double smoothing : {0.0, 0.125}) {
        SCOPED_TRACE(::testing::Message() << tokens << " tokens, vocabulary " << vocabulary << ", ε " << smoothing
                                          << (weighted ? ", weighted" : ""));
        const double scale = 1.0 / static_cast<double>(tokens);
        // The weighted cases also have a bias.
        Tensors inputs = {random_tensor({tokens, d}, 1), random_tensor({vocabulary, d}, 2)};
        if (weighted) inputs.push_back(random_tensor({vocabulary}, 3));
        const auto reference = [&](const Tensors& x) {
          const Tensor product = at::mm(x[0], x[1].t());
          return reference::cross_entropy(weighted ? product + x[2] : product, labels, weights, smoothing, scale);
        };
        expect_agreement(
            [&](const Tensors& x) {
              const Tensor logits = ops::linear(x[0], x[1], weighted ? x[2] : Tensor());
              return ops::cross_entropy(logits, labels, weights, smoothing, scale).loss;
            },
            reference, inputs);
        expect_agreement(
            [&](const Tensors& x) {
              return ops::linear_cross_entropy(x[0], x[1], weighted ? x[2] : Tensor(), labels, weights, smoothing,
                                               scale)
                  .loss;
            },
            reference, inputs, /*second=*/false);
      }
    }
  }
}

TEST(FastPath, DropoutAndAddition) {
  constexpr uint32_t kKeepBelow = 45875;  // 0.7 · 65536, rounded
  const ops::DropoutKey key{12345678901234567, 98765432109876543};
  for (const auto& [tokens, width] : {std::pair<int64_t, int64_t>{1, 1}, {1, 513}, {211, 67}}) {
    const std::vector<double> kept = reference::dropout_mask(key.seed, key.stream, kKeepBelow, 0, tokens * width);
    const Tensor mask = at::tensor(kept, at::kDouble).view({tokens, width}) * (65536.0 / kKeepBelow);
    const Tensors inputs = {random_tensor({tokens, width}, 1), random_tensor({tokens, width}, 2)};
    if (mask.sum().item<double>() == 0) continue;
    expect_agreement([&](const Tensors& x) { return ops::add_dropout(x[0], x[1] * x[1], 0.3, key); },
                     [&](const Tensors& x) { return x[0] + mask * x[1] * x[1]; }, inputs);
    expect_agreement([&](const Tensors& x) { return ops::dropout(x[0] * x[0], 0.3, key); },
                     [&](const Tensors& x) { return mask * x[0] * x[0]; }, {inputs[0]});
  }
}

TEST(FastPath, Embedding) {
  for (const auto& [vocabulary, width, tokens] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {7, 19, 301}, {1000, 67, 37}}) {
    Random random(4, "ids");
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < tokens; ++i)
      ids.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary))));
    expect_agreement([&](const Tensors& x) { return ops::embedding(x[0] * x[0], ids, 1.75); },
                     [&](const Tensors& x) { return 1.75 * (x[0] * x[0]).index_select(0, at::tensor(ids, at::kLong)); },
                     {random_tensor({vocabulary, width}, 1)});
  }
}

}  // namespace
}  // namespace plumb
