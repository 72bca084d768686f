// The linear layer, in whose products all others are written: a matrix, or several that read the same input, with an
// optional bias and low-rank adapters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plumb/nn/layer_division.h"
#include "plumb/nn/lora.h"
#include "plumb/nn/parameters.h"
#include "plumb/ops/linear.h"

namespace plumb {

/// y = W·x + b, and with adapters W + (alpha/rank)·B·A in place of W (nn/lora.h). The rows of W may be those of several
/// matrices, its parts, such as query, key and value: one product then computes all of them. Without a graph and with a
/// MatrixPrecision, W is packed once (ops/precision.h). A default-constructed layer is absent, and converts to false.
class Linear {
 public:
  Linear() = default;

  /// weight: (out, in); bias: (out) or undefined. `parts`: the rows of each part; empty: a single one.
  explicit Linear(Tensor weight, Tensor bias = {}, std::vector<int64_t> parts = {});

  /// Declares prefix.weight, (out, in), of this role and, if `biased`, prefix.bias, (out).
  Linear(Parameters& parameters, const std::string& prefix, int64_t out, int64_t in, Role role, bool biased = true);

  /// If `options` adapt the matrix `matrix`, which is this part, declares its adapter, name_lora.a and name_lora.b.
  void adapt(Parameters& parameters, const LoraOptions& options, const std::string& matrix, const std::string& name,
             size_t part = 0);

  /// Divides the rows of W and b, those of each part by itself: y is then this rank's share of the features of each
  /// part. Throws Error if the layer has adapters.
  void divide_outputs(LayerDivision& division);

  /// Divides the columns of W: x is then this rank's share of the features, and y the same in all ranks.
  void divide_inputs(LayerDivision& division);

  explicit operator bool() const { return weight_.defined(); }
  [[nodiscard]] const Tensor& weight() const { return weight_; }  // W, without adapters
  [[nodiscard]] const Tensor& bias() const { return bias_; }
  [[nodiscard]] int64_t in() const { return weight_.size(1); }
  [[nodiscard]] int64_t out() const { return weight_.size(0); }

  /// The layer, then the activation. x: (tokens, in) → (tokens, out).
  [[nodiscard]] Tensor operator()(const Tensor& x, ops::Activation activation = ops::Activation::none) const;

  /// Columns of the same: those of parts [first, first + count).
  [[nodiscard]] Tensor parts(const Tensor& x, size_t first, size_t count) const;

 private:
  /// W·x + b of these rows, summed over the ranks if the columns are divided.
  [[nodiscard]] Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               ops::Activation activation = ops::Activation::none) const;
  /// y, the product of these parts, plus what their adapters add.
  [[nodiscard]] Tensor adapted(const Tensor& y, const Tensor& x, size_t first, size_t count) const;

  Tensor weight_;
  Tensor bias_;
  std::vector<int64_t> rows_;                         // [part]
  std::vector<std::optional<LoraAdapter>> adapters_;  // [part]; empty: none at all
  Group columns_;                                     // the ranks that divide the columns of W
};

}  // namespace plumb
