// A stack of a residual scheme around simple sub-layers, and its norms in plain tensor operations.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plumb/nn/residual/residual.h"
#include "support/gradcheck.h"

namespace plumb::residual_stack {

using testing::random_tensor;

inline constexpr int64_t kWidth = 6;
inline constexpr int64_t kSubLayers = 2;
inline constexpr double kEps = 1e-5;

/// A stack of a scheme with random parameters around sub-layers f(x) = tanh(x·A).
class Stack {
 public:
  explicit Stack(const std::string& scheme, int64_t layers, StackKind kind = StackKind::encoder, ModelDepth model = {},
                 const VariantOptions& options = {})
      : kind_(kind), layers_(layers), parameters_(at::kDouble) {
    scheme_ = make_residual_scheme(scheme, parameters_,
                                   {kind, layers, kSubLayers, kWidth, "layernorm", kEps, model, options});
    parameters_.allocate();
    parameters_.flat().copy_(random_tensor({parameters_.count()}, 3, 0.4));
    for (int64_t i = 0; i < layers * kSubLayers; ++i) {
      weights_.push_back(random_tensor({kWidth, kWidth}, 100 + static_cast<uint64_t>(i), 0.7));
    }
  }

  [[nodiscard]] Tensor run(const Tensor& x, Pass pass = Pass::evaluation) const {
    ForwardContext context(pass);
    Stream stream = scheme_->enter(x, context);
    for (int64_t i = 0; i < layers_ * kSubLayers; ++i) {
      const std::function<Tensor(const Tensor&)> function = [this, i](const Tensor& h) { return f(i, h); };
      scheme_->apply(stream, {{kind_, i / kSubLayers}, i % kSubLayers, function}, context);
    }
    return scheme_->leave(stream, context);
  }

  [[nodiscard]] Tensor f(int64_t i, const Tensor& x) const {
    return at::tanh(at::matmul(x, weights_[static_cast<size_t>(i)]));
  }

  [[nodiscard]] Tensor value(const std::string& name) const { return parameters_.at(name).value.detach(); }
  /// A parameter of sub-layer i: "encoder.layers.0.norm1.weight" for "norm" and "weight".
  [[nodiscard]] Tensor value(int64_t i, const std::string& what, const std::string& part) const {
    return value(fmt::format("encoder.layers.{}.{}{}.{}", i / kSubLayers, what, i % kSubLayers + 1, part));
  }

  static Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& shift, double eps = kEps) {
    const Tensor centered = x - x.mean(1, true);
    return centered / (centered.square().mean(1, true) + eps).sqrt() * gain + shift;
  }
  [[nodiscard]] Tensor norm(int64_t i, const Tensor& x, const std::string& what = "norm") const {
    return layer_norm(x, value(i, what, "weight"), value(i, what, "bias"));
  }
  [[nodiscard]] Tensor final_norm(const Tensor& x, double eps = kEps) const { return norm("encoder.norm", x, eps); }
  /// The norm whose parameters have this prefix.
  [[nodiscard]] Tensor norm(const std::string& prefix, const Tensor& x, double eps = kEps) const {
    return layer_norm(x, value(prefix + ".weight"), value(prefix + ".bias"), eps);
  }
  [[nodiscard]] int64_t count() const { return layers_ * kSubLayers; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  StackKind kind_;
  int64_t layers_;
  Parameters parameters_;
  std::unique_ptr<ResidualScheme> scheme_;
  std::vector<Tensor> weights_;
};

inline const Tensor kInput = random_tensor({5, kWidth}, 1);

inline void expect_equal(const Tensor& found, const Tensor& expected) {
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
}

}  // namespace plumb::residual_stack
