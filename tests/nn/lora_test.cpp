// Adapters of attention and of feed-forward sub-layers, compared with the same with dense matrices
// W + (alpha/rank)·B·A.
#include "plumb/nn/lora.h"

#include <gtest/gtest.h>

#include <memory>

#include "nn/small_heads.h"
#include "plumb/base/error.h"
#include "plumb/nn/attention/multi_head.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using test::distance;
using testing::random_tensor;

constexpr int64_t kLoraModel = 7;
constexpr int64_t kLoraRank = 2;
constexpr double kLoraFactor = 5.0 / kLoraRank;
const ops::HeadShape kLoraHeads{4, 2, 3};  // four query heads, two key-value heads

LoraOptions lora_of(std::vector<std::string> matrices) { return {kLoraRank, 5, std::move(matrices)}; }

/// An attention with random parameters.
struct AdaptedAttention {
  Parameters parameters{at::kDouble};
  MultiHeadAttention attention;

  explicit AdaptedAttention(const MultiHeadOptions& options)
      : attention(parameters, "a", kLoraModel, kLoraHeads, options) {
    parameters.allocate();
    parameters.flat().copy_(random_tensor({parameters.count()}, 8, 0.5));
  }
  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at(name).value.detach(); }
};

/// The attention without adapters, with these merged into its matrices.
std::unique_ptr<AdaptedAttention> with_dense_matrices(const AdaptedAttention& adapted, MultiHeadOptions options) {
  options.lora = {};
  auto plain = std::make_unique<AdaptedAttention>(options);
  for (const Parameter& parameter : plain->parameters.all())
    parameter.value.detach().copy_(adapted.value(parameter.name));
  const auto add = [&](const std::string& name, const char* matrix, int64_t first, int64_t rows) {
    if (adapted.parameters.find("a." + name + "_lora.b") == nullptr) return;
    const Tensor product = at::mm(adapted.value("a." + name + "_lora.b"), adapted.value("a." + name + "_lora.a"));
    plain->value(matrix).narrow(0, first, rows).add_(product, kLoraFactor);
  };
  add("q", "a.in_proj_weight", 0, 12);
  add("k", "a.in_proj_weight", 12, 6);
  add("v", "a.in_proj_weight", 18, 6);
  add("out", "a.out_proj.weight", 0, kLoraModel);
  add("gate", "a.gate.weight", 0, 12);
  return plain;
}

const std::vector<std::vector<std::string>> kLoraChoices = {
    {"query", "value"}, {"key"}, {"value"}, {"output"}, {"gate"}, {"query", "key", "value", "output", "gate"}};

TEST(Lora, IsTheSumOfTheMatrixAndAProduct) {
  for (const auto& matrices : kLoraChoices) {
    for (const bool gate : {false, true}) {
      for (const char* qk_norm : {"none", "rmsnorm"}) {
        SCOPED_TRACE(matrices.front() + (gate ? " gate " : " ") + qk_norm);
        const MultiHeadOptions options{.qk_norm = qk_norm, .gate = gate, .lora = lora_of(matrices)};
        const AdaptedAttention adapted(options);
        const auto expected = with_dense_matrices(adapted, options);
        const Ragged layout({4, 2});
        const Tensor x = random_tensor({6, kLoraModel}, 1), memory = random_tensor({6, kLoraModel}, 2);
        EXPECT_LT(distance(adapted.attention.self(x, layout, true, {}), expected->attention.self(x, layout, true, {})),
                  1e-12);
        const auto crossed = [&](const MultiHeadAttention& attention) {
          return attention.cross(x, layout, attention.remember(memory, layout, {}), {});
        };
        EXPECT_LT(distance(crossed(adapted.attention), crossed(expected->attention)), 1e-12);
        const auto read = [&](const MultiHeadAttention& attention) {
          const at::NoGradGuard no_graph;
          const auto state = attention.start(2);
          AttentionPass pass(layout);
          return attention.read(x, pass, *state);
        };
        EXPECT_LT(distance(read(adapted.attention), read(expected->attention)), 1e-12);
        EXPECT_LT(distance(read(adapted.attention), adapted.attention.self(x, layout, true, {})), 1e-12);
      }
    }
  }
}

TEST(Lora, GradientsAreThoseOfTheDenseMatrices) {
  const MultiHeadOptions options{.lora = lora_of({"query", "value"})};
  const AdaptedAttention adapted(options);
  const auto plain = with_dense_matrices(adapted, options);
  const Ragged layout({5});
  const Tensor x = random_tensor({5, kLoraModel}, 1), w = random_tensor({5, kLoraModel}, 2);
  const auto gradient = [&](const AdaptedAttention& of, const std::vector<std::string>& names) {
    std::vector<Tensor> inputs;
    for (const std::string& name : names) inputs.push_back(of.parameters.at(name).value);
    return gradients({of.attention.self(x, layout, false, {})}, inputs, {w});
  };
  // W' = W + s·B·A: ∂A = s·Bᵀ·∂W', ∂B = s·∂W'·Aᵀ.
  const Tensor dense_gradient = gradient(*plain, {"a.in_proj_weight"})[0];
  const std::vector<Tensor> found = gradient(adapted, {"a.q_lora.a", "a.q_lora.b", "a.v_lora.a", "a.v_lora.b"});
  const Tensor query = dense_gradient.narrow(0, 0, 12), value = dense_gradient.narrow(0, 18, 6);
  EXPECT_LT(distance(found[0], kLoraFactor * at::mm(adapted.value("a.q_lora.b").t(), query)), 1e-12);
  EXPECT_LT(distance(found[1], kLoraFactor * at::mm(query, adapted.value("a.q_lora.a").t())), 1e-12);
  EXPECT_LT(distance(found[2], kLoraFactor * at::mm(adapted.value("a.v_lora.b").t(), value)), 1e-12);
  EXPECT_LT(distance(found[3], kLoraFactor * at::mm(value, adapted.value("a.v_lora.a").t())), 1e-12);
}

TEST(Lora, FeedForwardsAreThoseOfTheDenseMatrices) {
  const Tensor x = random_tensor({6, kLoraModel}, 1);
  for (const std::string& kind : feed_forwards().names()) {
    const bool gated = kind.find("glu") != std::string::npos;
    for (const auto& matrices : std::vector<std::vector<std::string>>{
             {"feed_forward_in"}, {"feed_forward_out"}, {"feed_forward_in", "feed_forward_out"}}) {
      SCOPED_TRACE(kind + " " + matrices.front());
      Parameters adapted(at::kDouble), dense(at::kDouble);
      const auto layer = feed_forwards().at(kind).make(adapted, {"l", kLoraModel, 5, true, lora_of(matrices)});
      const auto expected = feed_forwards().at(kind).make(dense, {"l", kLoraModel, 5, true});
      adapted.allocate();
      dense.allocate();
      adapted.flat().copy_(random_tensor({adapted.count()}, 8, 0.5));
      size_t adapters = 0;
      for (const Parameter& parameter : dense.all()) {
        const Tensor value = parameter.value.detach();
        value.copy_(adapted.at(parameter.name).value.detach());
        const std::string name = parameter.name.substr(0, parameter.name.rfind('.')) + "_lora.";
        if (!parameter.name.ends_with(".weight") || adapted.find(name + "a") == nullptr) continue;
        value.add_(at::mm(adapted.at(name + "b").value.detach(), adapted.at(name + "a").value.detach()), kLoraFactor);
        ++adapters;
      }
      const size_t into = gated ? 2 : 1;
      EXPECT_EQ(adapters, matrices.size() == 2 ? into + 1 : matrices.front() == "feed_forward_in" ? into : 1);
      EXPECT_LT(distance((*layer)(x), (*expected)(x)), 1e-12);
    }
  }
}

TEST(Lora, WrongOptionsAreErrors) {
  const auto check = [](const LoraOptions& options) { require_valid("model.lora", options); };
  EXPECT_NO_THROW(check({}));
  EXPECT_THROW(check({-1}), Error);
  EXPECT_THROW(check({2, 0}), Error);
  EXPECT_THROW(check({2, 8, {}}), Error);
  EXPECT_THROW(check({2, 8, {"queries"}}), Error);
  EXPECT_THROW(check({2, 8, {"query", "query"}}), Error);
}

}  // namespace
}  // namespace plumb
