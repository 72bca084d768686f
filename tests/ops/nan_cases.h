// A property of every operation: if an input is NaN, every output that depends on it is NaN, forward and backward. An
// output depends on an element if it changes when the element is replaced by other numbers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/ops/activation.h"
#include "plumb/ops/attention.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/dropout.h"
#include "plumb/ops/embedding.h"
#include "plumb/ops/exponential_rule.h"
#include "plumb/ops/gram_schmidt.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/linear_attention.h"
#include "plumb/ops/lstm.h"
#include "plumb/ops/norm.h"
#include "plumb/ops/packed_linear.h"
#include "plumb/ops/precision.h"
#include "plumb/ops/update.h"
#include "support/contains.h"
#include "support/gradcheck.h"

namespace plumb::testing {

struct NanCase {
  using Tensors = std::vector<Tensor>;

  std::string name;
  std::function<Tensors(const Tensors&)> f;
  std::function<Tensors()> inputs;  // float64
  int derivatives = 2;              // the highest order of derivatives
  std::vector<at::ScalarType> types = {at::kFloat, at::kDouble};
  std::vector<size_t> infinite = {};  // inputs in which +∞ must not give finite outputs in the forward pass
  double step = 1e-3;                 // a change of an element that does not cross ReLU's kink
};

namespace nan_cases {

using Tensors = NanCase::Tensors;

/// [order]: the values of f, the gradients of ⟨w, f⟩, and those of ⟨v, gradients⟩, up to test.derivatives. `inputs` are
/// the `count` inputs of f, followed by w.
inline std::vector<Tensors> orders(const NanCase& test, const Tensors& inputs, size_t count) {
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(test.derivatives > 0));
  const Tensors x(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(count));
  const Tensors y = test.f(x);
  std::vector<Tensors> all = {y};
  if (test.derivatives == 0) return all;
  Tensors outputs, weights;
  for (size_t i = 0; i < y.size(); ++i) {
    if (!y[i].requires_grad()) continue;
    outputs.push_back(y[i]);
    weights.push_back(leaves[count + i]);
  }
  all.push_back(gradients(outputs, x, weights, /*create_graph=*/test.derivatives > 1));
  if (test.derivatives == 1) return all;
  Tensors first, directions;
  for (const Tensor& gradient : all[1]) {
    if (!gradient.requires_grad()) continue;
    first.push_back(gradient);
    directions.push_back(random_tensor(gradient.sizes(), 301 + first.size()).to(gradient.scalar_type()));
  }
  all.push_back(first.empty() ? Tensors{} : gradients(first, leaves, directions));
  return all;
}

/// The same with element `at` of input `which` set to `value`.
inline std::vector<Tensors> orders_with(const NanCase& test, const Tensors& inputs, size_t count, size_t which,
                                        int64_t at, double value) {
  Tensors changed = inputs;
  changed[which] = inputs[which].clone();
  changed[which].view({-1})[at] = value;
  return orders(test, changed, count);
}

inline void expect_that_nan_is_passed_on(const NanCase& test, at::ScalarType type) {
  SCOPED_TRACE(test.name + (type == at::kFloat ? ", float32" : ", float64"));
  Tensors inputs;
  for (const Tensor& input : test.inputs()) inputs.push_back(input.to(type).contiguous());
  const size_t count = inputs.size();
  for (const Tensor& y : test.f(inputs)) inputs.push_back(random_tensor(y.sizes(), 201).to(y.scalar_type()));
  if (test.derivatives == 0) inputs.resize(count);
  const std::vector<Tensors> base = orders(test, inputs, count);
  int64_t seen = 0;
  for (size_t which = 0; which < inputs.size(); ++which) {
    const int64_t n = inputs[which].numel();
    for (const int64_t at : {int64_t{0}, n / 3, n / 2, 2 * n / 3 + 1, n - 1}) {
      if (at >= n) continue;
      SCOPED_TRACE(::testing::Message() << "input " << which << ", element " << at);
      const double x = inputs[which].view({-1})[at].item<double>();
      const auto with = [&](double value) { return orders_with(test, inputs, count, which, at, value); };
      const std::vector<Tensors> broken = with(std::numeric_limits<double>::quiet_NaN());
      std::vector<std::vector<Tensors>> others = {with(x + test.step), with(x - 3 * test.step)};
      const size_t small = others.size();
      for (const double value : {x + 3, x - 100}) others.push_back(with(value));
      for (size_t order = 0; order < base.size(); ++order) {
        for (size_t i = 0; i < base[order].size(); ++i) {
          Tensor depends = at::zeros_like(base[order][i], at::kBool);
          // Derivatives need not be NaN if they depend on the element only through a choice, such as ReLU's sign.
          for (size_t k = 0; k < (order == 0 ? others.size() : small); ++k)
            depends = depends.logical_or(others[k][order][i] != base[order][i]);
          seen += depends.sum().item<int64_t>();
          EXPECT_TRUE(broken[order][i].isnan().logical_or(depends.logical_not()).all().item<bool>())
              << "a number in output " << i << " of derivative " << order;
        }
      }
      if (!contains(test.infinite, which)) continue;
      const std::vector<Tensors> infinite = with(std::numeric_limits<double>::infinity());
      for (size_t i = 0; i < base[0].size(); ++i) {
        const Tensor depends = others[2][0][i] != base[0][i];
        EXPECT_FALSE(infinite[0][i].isfinite().logical_and(depends).any().item<bool>()) << "a finite number of ∞";
      }
    }
  }
  EXPECT_GT(seen, 0);
}

inline std::vector<NanCase> linear_layers() {
  using ops::Activation;
  const auto inputs = [] {
    return Tensors{random_tensor({70, 19}, 1), random_tensor({37, 19}, 2), random_tensor({37}, 3)};
  };
  const std::vector<at::ScalarType> single = {at::kFloat};
  std::vector<NanCase> all;
  for (const Activation activation : {Activation::none, Activation::relu}) {
    const bool relu = activation == Activation::relu;
    const std::string tail = relu ? " with ReLU" : "";
    const std::vector<size_t> infinite = relu ? std::vector<size_t>{} : std::vector<size_t>{0, 1, 2};
    all.push_back({"linear" + tail,
                   [=](const Tensors& x) { return Tensors{ops::linear(x[0], x[1], x[2], activation)}; },
                   inputs,
                   2,
                   {at::kFloat, at::kDouble},
                   infinite});
    all.push_back({"linear in bfloat16" + tail,
                   [=](const Tensors& x) { return Tensors{ops::rounded_linear(x[0], x[1], x[2], activation)}; }, inputs,
                   1, single, infinite});
    for (const auto& kind : {std::pair{"float32", ops::Precision::float32},
                             {"bf16", ops::Precision::bfloat16},
                             {"int8", ops::Precision::int8}}) {
      const ops::Precision precision = kind.second;
      // In int8, a row with an infinity has no finite scale.
      all.push_back(
          {std::string("packed ") + kind.first + tail,
           [=](const Tensors& x) { return Tensors{ops::PackedLinear(x[1], precision)(x[0], x[2], relu).clone()}; },
           inputs, 0, single, precision == ops::Precision::int8 ? std::vector<size_t>{0, 1} : infinite});
    }
  }
  for (const bool ta : {false, true}) {
    all.push_back({ta ? "matrix product, transposed" : "matrix product",
                   [=](const Tensors& x) {
                     return Tensors{ops::matrix_product(ta ? x[0].t().contiguous() : x[0], x[1], ta, true)};
                   },
                   [] {
                     return Tensors{random_tensor({7, 19}, 1), random_tensor({21, 19}, 2)};
                   },
                   2,
                   {at::kFloat, at::kDouble},
                   {0, 1}});
  }
  all.push_back({"product added to a matrix",
                 [](const Tensors& x) {
                   return Tensors{ops::gemm(x[0], x[1], {.transpose_b = true, .accumulate_into = x[2].clone()})};
                 },
                 [] {
                   return Tensors{random_tensor({7, 19}, 1), random_tensor({21, 19}, 2), random_tensor({7, 21}, 3)};
                 },
                 0,
                 {at::kFloat, at::kDouble},
                 {0, 1, 2}});
  all.push_back({"column sums",
                 [](const Tensors& x) { return Tensors{ops::column_sums(x[0])}; },
                 [] {
                   return Tensors{random_tensor({131, 37}, 1)};
                 },
                 2,
                 {at::kFloat, at::kDouble},
                 {0}});
  all.push_back({"rounding to bfloat16",
                 [](const Tensors& x) { return Tensors{ops::to_bfloat16(x[0]).to(at::kFloat)}; },
                 [] {
                   return Tensors{random_tensor({5, 37}, 1)};
                 },
                 0,
                 single,
                 {0}});
  return all;
}

inline std::vector<NanCase> attentions() {
  const Ragged layout({5, 1, 53}), queries({3, 1, 50}), keys({2, 60, 7});
  const ops::HeadShape shape{4, 2, 9};
  const int64_t width = shape.width(), kv = 2 * shape.kv_width();
  std::vector<NanCase> all;
  for (const bool causal : {false, true}) {
    all.push_back({causal ? "causal self-attention" : "self-attention",
                   [=](const Tensors& x) { return Tensors{ops::self_attention(x[0], layout, shape, causal)}; },
                   [=] {
                     return Tensors{random_tensor({layout.tokens(), width + kv}, 1)};
                   }});
  }
  all.push_back({"cross-attention",
                 [=](const Tensors& x) { return Tensors{ops::cross_attention(x[0], x[1], queries, keys, shape)}; },
                 [=] {
                   return Tensors{random_tensor({queries.tokens(), width}, 1), random_tensor({keys.tokens(), kv}, 2)};
                 }});
  all.push_back({"attention with a cache",
                 [=](const Tensors& x) {
                   ops::CachedKeys cache;
                   cache.append(x[1], Ragged({4, 1, 9}));
                   cache.reorder({2, 0, 0, 1});
                   cache.append(x[2], Ragged({1, 0, 3, 1}));
                   return Tensors{ops::cached_attention(x[0], Ragged({2, 0, 3, 1}), cache, shape)};
                 },
                 [=] {
                   return Tensors{random_tensor({6, width}, 1), random_tensor({14, kv}, 2), random_tensor({5, kv}, 3)};
                 },
                 0});
  all.push_back(
      {"LSTM",
       [=](const Tensors& x) {
         const ops::LstmResult found = ops::lstm(x[0], {x[1], x[2], x[3], x[4]}, {x[5], x[6]}, Ragged({3, 0, 1, 4}));
         return Tensors{found.hidden, found.last.hidden, found.last.cell};
       },
       [=] {
         return Tensors{random_tensor({8, 3}, 1), random_tensor({20, 3}, 2, 0.7), random_tensor({20, 5}, 3, 0.7),
                        random_tensor({20}, 4),   random_tensor({20}, 5),         random_tensor({4, 5}, 6),
                        random_tensor({4, 5}, 7)};
       }});
  return all;
}

/// The rules of fast weights, whose operations are LibTorch's with and without kernels.
inline std::vector<NanCase> fast_weights() {
  const Ragged layout({5, 1, 53});
  std::vector<NanCase> all;
  const auto fast = [=] {
    return Tensors{random_tensor({layout.tokens(), 2, 9}, 1), random_tensor({layout.tokens(), 2, 9}, 2),
                   random_tensor({layout.tokens(), 2, 7}, 3), random_tensor({layout.tokens(), 2}, 4).sigmoid()};
  };
  all.push_back({"sum rule",
                 [=](const Tensors& x) {
                   return Tensors{ops::sum_rule(x[0], x[1], x[2], layout), ops::sum_rule_weights(x[1], x[2], layout)};
                 },
                 fast});
  all.push_back({"delta rule",
                 [=](const Tensors& x) {
                   const Tensor weights = ops::delta_rule_weights(0.1 * x[1], x[2], x[3], layout);
                   return Tensors{ops::delta_rule(x[0], 0.1 * x[1], x[2], x[3], layout).out, weights,
                                  ops::read_weights(x[0], weights, layout)};
                 },
                 fast});
  all.push_back({"delta rule with decay",
                 [=](const Tensors& x) {
                   const Tensor decay = -x[0].abs();
                   const Tensor weights = ops::delta_rule_weights(0.1 * x[1], x[2], x[3], layout, decay);
                   return Tensors{ops::delta_rule(x[1], 0.1 * x[1], x[2], x[3], layout, decay).out, weights};
                 },
                 fast});
  all.push_back({"exponential rule",
                 [=](const Tensors& x) {
                   const Tensor weights = ops::exponential_rule_weights(x[1], x[2], layout).narrow(3, 0, 8);
                   return Tensors{ops::exponential_rule(x[0], x[1], x[2], layout), weights};
                 },
                 fast});
  return all;
}

inline std::vector<NanCase> others() {
  std::vector<NanCase> all;
  const std::vector<at::ScalarType> both = {at::kFloat, at::kDouble};
  const auto rows = [] { return Tensors{random_tensor({70, 37}, 1), random_tensor({37}, 2), random_tensor({37}, 3)}; };
  all.push_back({"LayerNorm",
                 [](const Tensors& x) { return Tensors{ops::layer_norm(x[0], x[1], x[2], 1e-5)}; },
                 rows,
                 2,
                 both,
                 {0, 1, 2}});
  all.push_back({"RMSNorm", [](const Tensors& x) { return Tensors{ops::rms_norm(x[0], x[1], 1e-5)}; },
                 [=] {
                   return Tensors{rows()[0], rows()[1]};
                 }});
  all.push_back(
      {"SiLU", [](const Tensors& x) { return Tensors{ops::silu(x[0])}; }, [=] { return Tensors{rows()[0]}; }});
  all.push_back({"GELU's approximation", [](const Tensors& x) { return Tensors{ops::gelu_tanh(x[0])}; },
                 [=] { return Tensors{rows()[0]}; }});
  all.push_back({"dropout",
                 [](const Tensors& x) {
                   return Tensors{ops::dropout(x[0], 0.3, {7, 9})};
                 },
                 [=] { return Tensors{rows()[0]}; },
                 2,
                 both,
                 {0}});
  all.push_back({"dropout and residual",
                 [](const Tensors& x) {
                   return Tensors{ops::add_dropout(x[0], x[1], 0.3, {7, 9})};
                 },
                 [=] {
                   return Tensors{rows()[0], random_tensor({70, 37}, 4)};
                 },
                 2,
                 both,
                 {0, 1}});
  all.push_back({"embedding",
                 [](const Tensors& x) {
                   return Tensors{ops::embedding(x[0], {4, 0, 4, 6, 1, 5}, 1.5)};
                 },
                 [] {
                   return Tensors{random_tensor({7, 37}, 1)};
                 },
                 2,
                 both,
                 {0}});
  std::vector<int64_t> labels;
  std::vector<double> weights;
  for (int64_t i = 0; i < 70; ++i) {
    labels.push_back(i * 7 % 37);
    weights.push_back(static_cast<double>(i % 3) / 2);
  }
  for (const double smoothing : {0.0, 0.1}) {
    const std::string tail = smoothing > 0 ? ", smoothed" : "";
    // With +∞ among the logits, the softmax is undefined.
    all.push_back({"cross-entropy" + tail,
                   [=](const Tensors& x) {
                     const ops::CrossEntropy result = ops::cross_entropy(x[0], labels, weights, smoothing, 0.3);
                     return Tensors{result.loss, at::full({}, static_cast<double>(result.nll), x[0].options())};
                   },
                   [=] { return Tensors{rows()[0]}; },
                   2,
                   both,
                   {0}});
    all.push_back({"linear cross-entropy" + tail,
                   [=](const Tensors& x) {
                     const ops::CrossEntropy result =
                         ops::linear_cross_entropy(x[0], x[1], x[2], labels, weights, smoothing, 0.3);
                     return Tensors{result.loss, at::full({}, static_cast<double>(result.nll), x[0].options())};
                   },
                   [] {
                     return Tensors{random_tensor({70, 5}, 2), random_tensor({37, 5}, 3), random_tensor({37}, 4)};
                   },
                   1, both});
  }
  all.push_back({"symmetric product",
                 [](const Tensors& x) {
                   return Tensors{ops::symmetric_product(x[0], x[0], {.scale = 0.5, .plus = x[1] + x[1].t()})};
                 },
                 [] {
                   return Tensors{random_tensor({20, 6}, 1), random_tensor({20, 20}, 2)};
                 },
                 0});
  const auto piece = [](uint64_t seed) { return random_tensor({37}, seed); };
  // g, then the vectors that the rule names, of which a nonnegative one is squared here
  const auto update = [&]<typename Update>(const std::string& name, const Update& rule, size_t squared) {
    all.push_back({name,
                   [=](const Tensors& x) {
                     ops::UpdatedPieces<Update::kVectors> pieces;
                     Tensors changed;
                     for (size_t k = 0; k < pieces.size(); ++k) {
                       changed.push_back(k == squared ? x[k + 1].square() : x[k + 1].clone());
                       pieces[k] = {changed.back()};
                     }
                     ops::update(std::vector<Update>{rule}, {x[0]}, pieces);
                     return changed;
                   },
                   [=] {
                     Tensors inputs;
                     for (uint64_t i = 0; i <= Update::kVectors; ++i) inputs.push_back(piece(i + 1));
                     return inputs;
                   },
                   0});
  };
  const ops::AdamUpdate adam{0.9, 0.98, 1e-9, 0.01, 1.3, 0.001, 0.5};
  constexpr size_t kNone = 9;
  update("Adam", adam, 1);
  for (const bool nesterov : {false, true}) update("SGD", ops::SgdUpdate{0.01, 0.9, 0.001, 0.5, nesterov}, kNone);
  update("averaged SGD", ops::AveragedUpdate{0.01, 0.001, 0.2, 0.5}, kNone);
  update("Lion", ops::LionUpdate{0.9, 0.99, 0.01, 0.001, 0.5}, kNone);
  update("Schedule-Free AdamW", ops::ScheduleFreeUpdate{0.9, 0.98, 1e-9, 0.01, 1.3, 0.001, 0.2, 0.5}, 2);
  for (const bool adapts : {false, true}) update("LAMB", ops::LambUpdate{adam, 0.01, adapts}, 1);
  all.push_back(
      {"sum of squares",
       [](const Tensors& x) { return Tensors{at::full({}, static_cast<double>(ops::sum_of_squares(x)), at::kDouble)}; },
       [=] {
         return Tensors{piece(1), piece(2)};
       },
       0,
       both,
       {0, 1}});
  all.push_back({"Gram-Schmidt",
                 [](const Tensors& x) {
                   Tensor w = x[2].clone();
                   const std::vector<double> sums = ops::gram_schmidt({x[0], x[1]}, {0.5, -2}, true, w);
                   return Tensors{w, at::tensor(at::ArrayRef<double>(sums), at::kDouble)};
                 },
                 [=] {
                   return Tensors{piece(1), piece(2), piece(3)};
                 },
                 0});
  return all;
}

/// Runs every case in each of its types, except for products that the processor does not support.
inline void expect_all(const std::vector<NanCase>& cases) {
  for (const NanCase& test : cases) {
    for (const at::ScalarType type : test.types) {
      try {
        expect_that_nan_is_passed_on(test, type);
      } catch (const Error& error) {
        EXPECT_CONTAINS(error.what(), "oneDNN refused") << test.name << error.what();
      }
    }
  }
}

}  // namespace nan_cases
}  // namespace plumb::testing
