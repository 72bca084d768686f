// Multi-head attention compared with its formulas: norms within heads, groups, gates, biases, value residuals.
#include "plumb/nn/attention/multi_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/small_heads.h"
#include "plumb/base/error.h"
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/position/position.h"
#include "support/gradcheck.h"

namespace plumb::multi_head_test {
namespace {

using test::distance;
using test::kHeads;
using test::kSize;
using test::kWidth;
using testing::random_tensor;

/// Norms of queries, keys and values, for self- and cross-attention.
TEST(MultiHeadAttention, NormalizesByHead) {
  for (const std::string value_norm : {"none", "layernorm"}) {
    Parameters parameters(at::kDouble);
    MultiHeadOptions options;
    options.qk_norm = "rmsnorm";
    options.value_norm = value_norm;
    const MultiHeadAttention attention(parameters, "a", kWidth, {kHeads, kHeads, kSize}, options);
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 8));
    const Tensor x = random_tensor({5, kWidth}, 1);
    const auto value = [&](const std::string& name) { return parameters.at(name).value.detach(); };
    const std::vector<Tensor> parts = at::addmm(value("a.in_proj_bias"), x, value("a.in_proj_weight").t()).chunk(3, 1);
    const auto rms = [&](const Tensor& part, const std::string& gain) {
      const Tensor heads = part.reshape({5, kHeads, kSize});
      return heads / (heads.pow(2).mean(-1, true) + 1e-5).sqrt() * value(gain);
    };
    const Tensor heads = parts[2].reshape({5, kHeads, kSize});
    const Tensor centered = heads - heads.mean(-1, true);
    const Tensor v = value_norm == "none"
                         ? heads
                         : centered / (centered.pow(2).mean(-1, true) + 1e-5).sqrt() * value("a.v_norm.weight") +
                               value("a.v_norm.bias");
    const Tensor scores =
        at::einsum("ihd,jhd->hij", {rms(parts[0], "a.q_norm.weight"), rms(parts[1], "a.k_norm.weight")});
    const Tensor weights = at::softmax(scores / std::sqrt(static_cast<double>(kSize)), -1);
    const Tensor mixed = at::einsum("hij,jhd->ihd", {weights, v});
    const Tensor expected =
        at::addmm(value("a.out_proj.bias"), mixed.reshape({5, kWidth}), value("a.out_proj.weight").t());
    const Ragged layout({5});
    EXPECT_LT(distance(attention.self(x, layout, false, {}), expected), 1e-12);
    EXPECT_LT(distance(attention.cross(x, layout, attention.remember(x, layout, {}), {}), expected), 1e-12);
  }
}

/// Multi-head attention with random parameters.
struct MultiHead {
  Parameters parameters{at::kDouble};
  std::unique_ptr<Positions> encoding;
  std::unique_ptr<MultiHeadAttention> attention;

  MultiHead(int64_t d_model, const ops::HeadShape& heads, const MultiHeadOptions& options,
            const std::string& positions_name = "none", bool value_residual = false) {
    encoding = make_positions(positions_name, parameters, "position", {d_model, heads.heads, 64, true, heads.size, {}});
    attention = std::make_unique<MultiHeadAttention>(parameters, "a", d_model, heads, options,
                                                     encoding->within(parameters, "a"));
    if (value_residual) attention->add_value_residual(parameters, "a");
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 8, 0.5));
  }
  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at(name).value.detach(); }
};

/// Rows of key and value heads repeated for each query head that shares them; query rows unchanged.
Tensor with_heads_repeated(const Tensor& stacked, const ops::HeadShape& heads) {
  std::vector<Tensor> rows = {stacked.narrow(0, 0, heads.width())};
  for (int64_t part = 0; part < 2; ++part) {
    for (int64_t h = 0; h < heads.heads; ++h) {
      const int64_t begin = heads.width() + part * heads.kv_width() + h / (heads.heads / heads.kv_heads) * heads.size;
      rows.push_back(stacked.narrow(0, begin, heads.size));
    }
  }
  return at::cat(rows, 0);
}

/// Query heads that share key-value heads behave like separate heads with equal keys and values.
TEST(MultiHeadAttention, GroupsShareKeysAndValues) {
  constexpr int64_t kModel = 7;
  for (const std::string& kind : attentions().names()) {
    for (const std::string& encoding : positions().names()) {
      const bool biased = encoding == "alibi" || encoding == "t5" || encoding == "transformer-xl";
      if (biased && kind != "softmax") continue;
      for (const int64_t kv_heads : {1, 2, 4}) {
        for (const char* qk_norm : {"none", "rmsnorm"}) {
          SCOPED_TRACE(kind + " " + encoding + " " + std::to_string(kv_heads) + " " + qk_norm);
          MultiHeadOptions options;
          options.kind = kind;
          options.qk_norm = qk_norm;
          options.options = {{"dpfp", Options(DpfpOptions{5})}};
          const ops::HeadShape shared{4, kv_heads, 6};
          const MultiHead grouped(kModel, shared, options, encoding);
          const MultiHead full(kModel, {4, 4, 6}, options, encoding);
          EXPECT_EQ(grouped.value("a.in_proj_weight").sizes(), at::IntArrayRef({24 + 12 * kv_heads, kModel}));
          EXPECT_EQ(grouped.value("a.out_proj.weight").sizes(), at::IntArrayRef({kModel, 24}));
          for (const Parameter& parameter : full.parameters.all()) {
            const Tensor given = grouped.value(parameter.name);
            const bool stacked = parameter.name.find("in_proj") != std::string::npos;
            parameter.value.detach().copy_(stacked ? with_heads_repeated(given, shared) : given);
          }
          const Tensor x = random_tensor({9, kModel}, 1);
          const Tensor other = random_tensor({5, kModel}, 2);
          const Ragged layout({4, 5});
          const Ragged source({2, 3});
          for (const bool causal : {true, false}) {
            if (!causal && encoding == "t5") continue;  // its buckets are the causal ones
            EXPECT_LT(
                distance(grouped.attention->self(x, layout, causal, {}), full.attention->self(x, layout, causal, {})),
                1e-12);
          }
          EXPECT_LT(distance(grouped.attention->cross(x, layout, grouped.attention->remember(other, source, {}), {}),
                             full.attention->cross(x, layout, full.attention->remember(other, source, {}), {})),
                    1e-12);
        }
      }
    }
  }
}

/// x_t turned by the angles t·10000^(−2i/size) in the planes of features 2i and 2i + 1; (tokens, heads, size).
Tensor turned(const Tensor& x) {
  Tensor out = at::empty_like(x);
  const int64_t size = x.size(2);
  for (int64_t t = 0; t < x.size(0); ++t) {
    for (int64_t i = 0; i < size / 2; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(size));
      const Tensor a = x.select(0, t).select(1, 2 * i), b = x.select(0, t).select(1, 2 * i + 1);
      out.select(0, t).select(1, 2 * i).copy_(std::cos(angle) * a - std::sin(angle) * b);
      out.select(0, t).select(1, 2 * i + 1).copy_(std::sin(angle) * a + std::cos(angle) * b);
    }
  }
  return out;
}

/// nGPT: scores √size·(s∘n(Rq))·(s∘n(Rk)), rotated by R first, and s = √d_model·qk_scale for each key-value head.
TEST(MultiHeadAttention, ScalesUnitQueriesAndKeysAfterTheirRotation) {
  constexpr int64_t kModel = 7, kTokens = 5;
  MultiHeadOptions options;
  options.unit_query_key = true;
  for (const int64_t kv_heads : {1, 2, 4}) {
    for (const char* encoding : {"rotary", "none"}) {
      SCOPED_TRACE(std::string(encoding) + " " + std::to_string(kv_heads));
      const ops::HeadShape heads{4, kv_heads, 6};
      const MultiHead subject(kModel, heads, options, encoding);
      const Tensor x = random_tensor({kTokens, kModel}, 1), source = random_tensor({kTokens, kModel}, 2);
      const auto projected = [&](const Tensor& in, int64_t part) {  // (tokens, 4, 6)
        const Tensor weight = with_heads_repeated(subject.value("a.in_proj_weight"), heads);
        const Tensor bias = with_heads_repeated(subject.value("a.in_proj_bias"), heads);
        return at::addmm(bias, in, weight.t()).chunk(3, 1)[static_cast<size_t>(part)].reshape({kTokens, 4, 6});
      };
      const Tensor by_key_head = std::sqrt(7.0) * subject.value("a.qk_scale").view({kv_heads, 6});
      const Tensor s = by_key_head.repeat_interleave(4 / kv_heads, 0);
      EXPECT_GT(s.std().item<double>(), 0.1);
      const auto attended = [&](const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
        const auto unit = [&](const Tensor& rows) { return s * (rows / rows.square().sum(-1, true).sqrt()); };
        Tensor scores = std::sqrt(6.0) * at::einsum("ihd,jhd->hij", {unit(q), unit(k)});
        if (causal) scores = scores.masked_fill(at::ones({kTokens, kTokens}, at::kBool).triu(1), -1e300);
        const Tensor mixed = at::einsum("hij,jhd->ihd", {at::softmax(scores, -1), v});
        return at::addmm(subject.value("a.out_proj.bias"), mixed.reshape({kTokens, 24}),
                         subject.value("a.out_proj.weight").t());
      };
      const auto placed = [&](const Tensor& rows) { return std::string(encoding) == "rotary" ? turned(rows) : rows; };
      const Ragged layout({kTokens});
      for (const bool causal : {true, false}) {
        const Tensor expected = attended(placed(projected(x, 0)), placed(projected(x, 1)), projected(x, 2), causal);
        EXPECT_LT(distance(subject.attention->self(x, layout, causal, {}), expected), 1e-11);
      }
      const Tensor across = attended(projected(x, 0), projected(source, 1), projected(source, 2), false);
      const AttentionMemory memory = subject.attention->remember(source, layout, {});
      EXPECT_LT(distance(subject.attention->cross(x, layout, memory, {}), across), 1e-11);
      // Position by position.
      const at::NoGradGuard no_graph;
      const auto state = subject.attention->start(1);
      std::vector<Tensor> read;
      for (int64_t t = 0; t < kTokens; ++t) {
        const Ragged one({1});
        AttentionPass pass(one, {t});
        read.push_back(subject.attention->read(x.narrow(0, t, 1), pass, *state));
      }
      EXPECT_LT(distance(at::cat(read), subject.attention->self(x, layout, true, {})), 1e-12);
    }
  }
}

/// Heads whose size is not d_model/heads, against the formula.
TEST(MultiHeadAttention, HeadsOfAnySize) {
  constexpr int64_t kModel = 7;
  constexpr int64_t kTokens = 5;
  const ops::HeadShape heads{3, 3, 4};
  const MultiHead subject(kModel, heads, {});
  const Tensor x = random_tensor({kTokens, kModel}, 1);
  const auto parts = at::addmm(subject.value("a.in_proj_bias"), x, subject.value("a.in_proj_weight").t()).chunk(3, 1);
  const auto by_head = [&](const Tensor& part) { return part.reshape({kTokens, 3, 4}); };
  const Tensor scores = at::einsum("ihd,jhd->hij", {by_head(parts[0]), by_head(parts[1])}) / 2;
  const Tensor mixed = at::einsum("hij,jhd->ihd", {at::softmax(scores, -1), by_head(parts[2])});
  const Tensor expected =
      at::addmm(subject.value("a.out_proj.bias"), mixed.reshape({kTokens, 12}), subject.value("a.out_proj.weight").t());
  EXPECT_LT(distance(subject.attention->self(x, Ragged({kTokens}), false, {}), expected), 1e-12);
}

/// W^O reads attention(Q, K, V) ⊙ σ(W_g·x), in self- and cross-attention.
TEST(MultiHeadAttention, GatesWhatAttentionReturns) {
  constexpr int64_t kModel = 7;
  const ops::HeadShape heads{3, 3, 4};
  MultiHeadOptions options;
  options.gate = true;
  const MultiHead gated(kModel, heads, options);
  const MultiHead plain(kModel, heads, {});
  for (const Parameter& parameter : plain.parameters.all()) parameter.value.detach().copy_(gated.value(parameter.name));
  // The input of W^O in the ungated attention: its output with W^O = I and no bias, for each part of the width.
  const auto mixed = [&](const std::function<Tensor()>& run) {
    std::vector<Tensor> columns;
    plain.value("a.out_proj.bias").zero_();
    for (int64_t begin = 0; begin < 12; begin += 6) {
      plain.value("a.out_proj.weight").zero_();
      for (int64_t i = 0; i < 6; ++i) plain.value("a.out_proj.weight")[i][begin + i] = 1;
      columns.push_back(run().narrow(1, 0, 6));
    }
    return at::cat(columns, 1);
  };
  const Tensor x = random_tensor({5, kModel}, 1), source = random_tensor({4, kModel}, 2);
  const Tensor gate = 1 / (1 + (-at::matmul(x, gated.value("a.gate.weight").t())).exp());
  const auto expected = [&](const Tensor& read) {
    return at::addmm(gated.value("a.out_proj.bias"), read * gate, gated.value("a.out_proj.weight").t());
  };
  const Ragged layout({5}), other({4});
  EXPECT_LT(distance(gated.attention->self(x, layout, true, {}),
                     expected(mixed([&] { return plain.attention->self(x, layout, true, {}); }))),
            1e-12);
  EXPECT_LT(
      distance(gated.attention->cross(x, layout, gated.attention->remember(source, other, {}), {}), expected(mixed([&] {
                 return plain.attention->cross(x, layout, plain.attention->remember(source, other, {}), {});
               }))),
      1e-12);
}

TEST(MultiHeadAttention, HasTheBiasesThatAreWanted) {
  const Tensor x = random_tensor({5, kWidth}, 1);
  MultiHeadOptions all;
  const MultiHead complete(kWidth, {kHeads, kHeads, kSize}, all);
  for (const std::string bias : {"qkv", "none"}) {
    MultiHeadOptions options;
    options.bias = bias;
    const MultiHead subject(kWidth, {kHeads, kHeads, kSize}, options);
    EXPECT_EQ(subject.parameters.find("a.in_proj_bias") != nullptr, bias == "qkv");
    EXPECT_EQ(subject.parameters.find("a.out_proj.bias"), nullptr);
    // The same as with biases of 0.
    complete.parameters.flat().zero_();
    for (const Parameter& parameter : subject.parameters.all())
      complete.value(parameter.name).copy_(parameter.value.detach());
    EXPECT_LT(
        distance(subject.attention->self(x, Ragged({5}), true, {}), complete.attention->self(x, Ragged({5}), true, {})),
        1e-14);
    const AttentionMemory memory = subject.attention->remember(x, Ragged({5}), {});
    EXPECT_LT(distance(subject.attention->cross(x, Ragged({5}), memory, {}),
                       complete.attention->cross(x, Ragged({5}), complete.attention->remember(x, Ragged({5}), {}), {})),
              1e-14);
  }
}

/// v ← λ₁·v + λ₂·v₁ in the second layer of a pass; the first layer's values are unchanged.
TEST(MultiHeadAttention, MixesInTheValuesOfTheFirstLayer) {
  const ops::HeadShape heads{4, 2, 3};
  const MultiHead first(kWidth, heads, {}, "rotary");
  const MultiHead second(kWidth, heads, {}, "rotary", /*value_residual=*/true);
  const Tensor lambdas = second.value("a.value_residual.weight");
  EXPECT_EQ(lambdas.sizes(), at::IntArrayRef({2}));
  EXPECT_EQ(second.parameters.at("a.value_residual.weight").initial, 0.5);
  const Ragged layout({3, 4});
  const Tensor x = random_tensor({7, kWidth}, 1);
  const Tensor y = random_tensor({7, kWidth}, 2);
  AttentionPass pass(layout), plain(layout);
  pass.keeps_values = true;
  EXPECT_TRUE(at::equal(first.attention->self(x, pass, true, {}), first.attention->self(x, layout, true, {})));
  static_cast<void>(first.attention->self(x, plain, true, {}));
  EXPECT_FALSE(plain.first_values.defined()) << "would keep the whole projection alive for nobody";
  const Tensor found = second.attention->self(y, pass, true, {});

  // An attention that reads x and y side by side, whose value rows do the mixing.
  const MultiHead both(2 * kWidth, heads, {}, "rotary");
  const int64_t keys = heads.width() + heads.kv_width();
  const auto rows = [&](const MultiHead& of, int64_t begin, int64_t count) {
    return of.value("a.in_proj_weight").narrow(0, begin, count);
  };
  const auto bias = [&](const MultiHead& of, int64_t begin, int64_t count) {
    return of.value("a.in_proj_bias").narrow(0, begin, count);
  };
  both.value("a.in_proj_weight").zero_();
  both.value("a.in_proj_weight").narrow(0, 0, keys).narrow(1, kWidth, kWidth).copy_(rows(second, 0, keys));
  const Tensor of_values = both.value("a.in_proj_weight").narrow(0, keys, heads.kv_width());
  of_values.narrow(1, 0, kWidth).copy_(lambdas[1] * rows(first, keys, heads.kv_width()));
  of_values.narrow(1, kWidth, kWidth).copy_(lambdas[0] * rows(second, keys, heads.kv_width()));
  both.value("a.in_proj_bias").narrow(0, 0, keys).copy_(bias(second, 0, keys));
  both.value("a.in_proj_bias")
      .narrow(0, keys, heads.kv_width())
      .copy_(lambdas[0] * bias(second, keys, heads.kv_width()) + lambdas[1] * bias(first, keys, heads.kv_width()));
  // Its output matrix has twice as many rows: the second layer's, then arbitrary ones.
  both.value("a.out_proj.weight").narrow(0, 0, kWidth).copy_(second.value("a.out_proj.weight"));
  both.value("a.out_proj.bias").narrow(0, 0, kWidth).copy_(second.value("a.out_proj.bias"));
  const Tensor expected = both.attention->self(at::cat({x, y}, 1), layout, true, {}).narrow(1, 0, kWidth);
  EXPECT_LT(distance(found, expected), 1e-12);
}

TEST(MultiHeadAttention, RefusesHeadsThatMakeNoGroups) {
  EXPECT_THROW(MultiHead(kWidth, {4, 3, 2}, {}), Error);
  EXPECT_THROW(MultiHead(kWidth, {4, 0, 2}, {}), Error);
}

}  // namespace
}  // namespace plumb::multi_head_test
