// Residual schemes with several streams, and schemes that change the sub-layers, compared with their equations in plain
// tensor operations and float64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/model/config.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/residual/residual.h"
#include "residual_stack.h"

namespace plumb::residual_streams_test {
namespace {

using residual_stack::expect_equal;
using residual_stack::kEps;
using residual_stack::kInput;
using residual_stack::kSubLayers;
using residual_stack::kWidth;
using residual_stack::Stack;

/// A stack of a scheme with options, given as TOML: "[model.mhc]\nstreams = 3".
Stack stack_with(const std::string& scheme, int64_t layers, const std::string& toml) {
  ModelConfig config;
  Config::from_string(toml, "test").read("model", config);
  return Stack(scheme, layers, StackKind::encoder, {}, config.options);
}

/// Initializes the parameters, which are random otherwise; the sub-layers' matrices are not among them.
void start(const Stack& stack) { initialize(stack.parameters(), {"xavier-normal"}, {2, 0}, 1); }

TEST(ResidualStreams, LayerNormScaling) {
  const Stack stack("lns", 3);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    const int64_t layer = i / kSubLayers + 1;
    x = x + stack.f(i, stack.norm(i, x) / std::sqrt(static_cast<double>(layer)));
  }
  expect_equal(stack.run(kInput), stack.final_norm(x));
}

TEST(ResidualStreams, ParallelLn) {
  const Stack stack("parallel-ln", 3);
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); i += kSubLayers) {
    Tensor sum = x;
    for (int64_t k = i; k < i + kSubLayers; ++k) sum = sum + stack.f(k, stack.norm(k, x));
    x = sum;
  }
  expect_equal(stack.run(kInput), stack.final_norm(x));
}

TEST(ResidualStreams, HybridNormAndItsStarredForm) {
  for (const char* scheme : {"hybridnorm", "hybridnorm-star"}) {
    const bool starred = std::string(scheme) == "hybridnorm-star";
    EXPECT_TRUE(prescription_of(scheme).qkv_norm);
    const Stack stack(scheme, 3);
    Tensor x = kInput;
    for (int64_t i = 0; i < stack.count(); ++i) {
      if (starred && i < kSubLayers) {
        x = x + stack.f(i, stack.norm(i, x));
      } else if (i % kSubLayers == 0) {  // attention
        x = x + stack.f(i, x);
        EXPECT_EQ(stack.parameters().find(fmt::format("encoder.layers.{}.norm1.weight", i / kSubLayers)), nullptr);
      } else {
        const Tensor y = stack.norm(i, x);
        x = y + stack.f(i, y);
      }
    }
    expect_equal(stack.run(kInput), stack.final_norm(x));
  }
}

TEST(ResidualStreams, SiameseNorm) {
  const Stack stack("siamesenorm", 3);
  Tensor x = kInput;
  Tensor y = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) {
    x = stack.norm(i, x);
    const Tensor z = stack.f(i, stack.norm(i, x + stack.norm(i, y, "second_norm"), "inner_norm"));
    const int64_t layer = i / kSubLayers + 1;
    x = x + z / std::sqrt(2.0 * static_cast<double>(layer));
    y = y + z;
  }
  expect_equal(stack.run(kInput),
               stack.final_norm(stack.norm("encoder.first_norm", x) + stack.norm("encoder.second_norm", y)));
}

Tensor column(const Tensor& x) { return x.unsqueeze(1); }

/// Hyper-connections with one tensor (tokens, d_model) for each hidden vector.
Tensor hyper_connected(const Stack& stack, const Tensor& input, size_t n, bool dynamic) {
  std::vector<Tensor> hidden(n, input);
  for (int64_t i = 0; i < stack.count(); ++i) {
    const auto value = [&](const char* what) { return stack.value(i, "hyper", what); };
    const Tensor read = value("read"), mix = value("mix"), write = value("write");
    const auto at = [](size_t index) { return static_cast<int64_t>(index); };
    std::vector<Tensor> reads(n), writes(n);
    std::vector<std::vector<Tensor>> mixes(n, std::vector<Tensor>(n));
    for (size_t a = 0; a < n; ++a) {
      Tensor none = at::zeros({input.size(0)}, input.options());
      const auto change = [&](int64_t row, int64_t scale) {
        if (!dynamic) return none;
        const Tensor normed = Stack::layer_norm(hidden[a], value("norm.weight"), value("norm.bias"));
        return value("scales")[scale] * at::tanh((normed * value("dynamic")[row]).sum(1));
      };
      reads[a] = read[at(a)] + change(0, 0);
      for (size_t b = 0; b < n; ++b) mixes[a][b] = mix[at(a)][at(b)] + change(1 + at(b), 0);
      writes[a] = write[at(a)] + change(1 + at(n), 1);
    }
    Tensor h = at::zeros_like(input);
    for (size_t a = 0; a < n; ++a) h = h + column(reads[a]) * hidden[a];
    const Tensor y = stack.f(i, stack.norm(i, h));
    std::vector<Tensor> next(n);
    for (size_t b = 0; b < n; ++b) {
      next[b] = column(writes[b]) * y;
      for (size_t a = 0; a < n; ++a) next[b] = next[b] + column(mixes[a][b]) * hidden[a];
    }
    hidden = std::move(next);
  }
  Tensor sum = at::zeros_like(input);
  for (const Tensor& h : hidden) sum = sum + h;
  return sum;
}

TEST(ResidualStreams, HyperConnections) {
  const Stack usual("hyper-connections", 3);
  expect_equal(usual.run(kInput), usual.final_norm(hyper_connected(usual, kInput, 4, true)));
  const Stack fixed = stack_with("hyper-connections", 2, "[model.hyper-connections]\nstreams = 3\ndynamic = false");
  EXPECT_EQ(fixed.parameters().find("encoder.layers.0.hyper1.dynamic"), nullptr);
  expect_equal(fixed.run(kInput), fixed.final_norm(hyper_connected(fixed, kInput, 3, false)));
  EXPECT_THROW(stack_with("hyper-connections", 1, "[model.hyper-connections]\nstreams = 0"), Error);
}

/// Pre-LN with the norms of the stack, with the output before the last norm multiplied by `streams`, the number of
/// hidden vectors that are summed.
Tensor pre_ln(const Stack& stack, double streams) {
  Tensor x = kInput;
  for (int64_t i = 0; i < stack.count(); ++i) x = x + stack.f(i, stack.norm(i, x));
  return stack.final_norm(streams * x);
}

TEST(ResidualStreams, HyperConnectionsStartAsPreLn) {
  const Stack hyper("hyper-connections", 3);
  start(hyper);
  expect_equal(hyper.run(kInput), pre_ln(hyper, 4));
  // Sub-layer i reads hidden vector i mod n.
  EXPECT_EQ(hyper.value(5, "hyper", "read").argmax().item<int64_t>(), 1);
  EXPECT_EQ(hyper.value(5, "hyper", "read").sum().item<double>(), 1);

  const Stack constrained("mhc", 3);
  start(constrained);
  for (int64_t i = 0; i < constrained.count(); ++i) {
    EXPECT_GT(constrained.value(i, "hyper", "weight").abs().min().item<double>(), 0);  // initialized, unlike α
    constrained.value(i, "hyper", "alpha").zero_();
  }
  expect_equal(constrained.run(kInput), pre_ln(constrained, 4));
}

TEST(ResidualStreams, ManifoldConstrainedHyperConnections) {
  for (const int64_t n : {4, 2}) {
    const int64_t iterations = n == 4 ? 20 : 3;
    const Stack stack = n == 4 ? Stack("mhc", 3) : stack_with("mhc", 2, "[model.mhc]\nstreams = 2\niterations = 3");
    std::vector<Tensor> hidden(static_cast<size_t>(n), kInput);
    for (int64_t i = 0; i < stack.count(); ++i) {
      const auto value = [&](const char* what) { return stack.value(i, "hyper", what); };
      const Tensor flat = at::cat(hidden, 1);
      const Tensor normed = flat / (flat.square().mean(1, true) + kEps).sqrt();
      const auto projected = [&](int64_t row, int64_t kind) {
        return value("alpha")[kind] * (normed * value("weight")[row]).sum(1);
      };
      Tensor read = at::zeros_like(kInput);
      for (int64_t a = 0; a < n; ++a) {
        const Tensor pre = 1 / (1 + at::exp(-(projected(a, 0) + value("pre_bias")[a])));
        read = read + column(pre) * hidden[static_cast<size_t>(a)];
      }
      const Tensor y = stack.f(i, stack.norm(i, read));
      Tensor mix = at::empty({kInput.size(0), n, n}, kInput.options());
      for (int64_t a = 0; a < n; ++a) {
        for (int64_t b = 0; b < n; ++b)
          mix.select(1, a).select(1, b).copy_(at::exp(projected(2 * n + a * n + b, 2) + value("res_bias")[a][b]));
      }
      for (int64_t k = 0; k < iterations; ++k) {
        mix = mix / mix.sum(1, true);
        mix = mix / mix.sum(2, true);
      }
      const double columns = (mix.sum(1) - 1).abs().max().item<double>();
      EXPECT_LT(columns, n == 4 ? 1e-9 : 1.0);  // after 20 iterations they sum to 1, too
      std::vector<Tensor> next;
      for (int64_t a = 0; a < n; ++a) {
        const Tensor post = 2 / (1 + at::exp(-(projected(n + a, 1) + value("post_bias")[a])));
        Tensor row = column(post) * y;
        for (int64_t b = 0; b < n; ++b)
          row = row + column(mix.select(1, a).select(1, b)) * hidden[static_cast<size_t>(b)];
        next.push_back(row);
      }
      hidden = std::move(next);
    }
    Tensor sum = at::zeros_like(kInput);
    for (const Tensor& h : hidden) sum = sum + h;
    expect_equal(stack.run(kInput), stack.final_norm(sum));
  }
  EXPECT_THROW(stack_with("mhc", 1, "[model.mhc]\nstreams = 1"), Error);
  EXPECT_THROW(stack_with("mhc", 1, "[model.mhc]\niterations = 0"), Error);
}

TEST(ResidualStreams, AttentionResiduals) {
  for (const int64_t block : {1, 2, 4}) {  // 4 of 6 sub-layers: the last block is incomplete
    const Stack stack = stack_with("attnres", 3, fmt::format("[model.attnres]\nblock = {}", block));
    std::vector<Tensor> outputs;
    const auto read = [&](const std::string& prefix) {
      std::vector<Tensor> sources = {kInput};
      for (size_t j = 0; j < outputs.size(); ++j) {
        if (j % static_cast<size_t>(block) == 0) {
          sources.push_back(outputs[j]);
        } else {
          sources.back() = sources.back() + outputs[j];
        }
      }
      Tensor sum = at::zeros_like(kInput);
      Tensor total = at::zeros({kInput.size(0), 1}, kInput.options());
      for (const Tensor& v : sources) {
        const Tensor key = v / (v.square().mean(1, true) + kEps).sqrt() * stack.value(prefix + ".norm.weight");
        const Tensor weight = at::exp((key * stack.value(prefix + ".query")).sum(1, true));
        sum = sum + weight * v;
        total = total + weight;
      }
      return sum / total;
    };
    for (int64_t i = 0; i < stack.count(); ++i) {
      const std::string prefix = fmt::format("encoder.layers.{}.depth{}", i / kSubLayers, i % kSubLayers + 1);
      outputs.push_back(stack.f(i, stack.norm(i, i == 0 ? kInput : read(prefix))));
    }
    expect_equal(stack.run(kInput), stack.final_norm(read("encoder.depth")));
  }
  EXPECT_THROW(stack_with("attnres", 1, "[model.attnres]\nblock = 0"), Error);

  const Stack stack("attnres", 1);  // equal weights at first
  start(stack);
  const Tensor first = stack.f(0, stack.norm(0, kInput));
  const Tensor second = stack.f(1, stack.norm(1, (kInput + first) / 2));
  expect_equal(stack.run(kInput), stack.final_norm((kInput + first + second) / 3));
}

TEST(ResidualStreams, NormalizedTransformer) {
  EXPECT_TRUE(prescription_of("ngpt").unit_matrices);
  for (const double alpha : {0.05, 0.3}) {
    const Stack stack = stack_with("ngpt", 3, fmt::format("[model.ngpt]\nalpha = {}", alpha));
    const auto n = [](const Tensor& x) { return x / x.square().sum(1, true).sqrt(); };
    const double root = std::sqrt(static_cast<double>(kWidth));
    Tensor h = n(kInput);
    for (int64_t i = 0; i < stack.count(); ++i) {
      const Tensor rate = alpha * root * stack.value(i, "alpha", "weight").abs();
      h = n(h + rate * (n(stack.f(i, root * h)) - h));
    }
    expect_equal(stack.run(kInput), h);
    start(stack);
    EXPECT_NEAR(stack.value(0, "alpha", "weight").max().item<double>() * root, 1, 1e-12);
  }
  EXPECT_THROW(stack_with("ngpt", 1, "[model.ngpt]\nalpha = 0.0"), Error);
}

TEST(ResidualStreams, OthersPrescribeNothing) {
  for (const char* scheme : {"pre-ln", "lns", "mhc", "n/da"}) EXPECT_EQ(prescription_of(scheme), Prescription());
  EXPECT_THROW(prescription_of("post-nl"), Error);
}

}  // namespace
}  // namespace plumb::residual_streams_test
