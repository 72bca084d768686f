// The common part of schemes with several hidden vectors per token: hyper-connections and mHC.
#pragma once

#include "plumb/nn/residual/sub_layer_norms.h"

namespace plumb {

/// n hidden vectors per token, H (tokens, n, d). A sub-layer reads a combination of them and writes to all:
///   y = dropout(f(norm(read·H)));  H ← mix·H + writeᵀ·yᵀ
///   H₀ = n copies of the input;  output = norm(sum of the rows of H)
/// Schemes differ in the coefficients, which may depend on H.
class HiddenVectorsScheme : public ResidualScheme {
 public:
  Stream enter(const Tensor& x, ForwardContext& context) const final;
  void apply(Stream& stream, const SubLayer& f, ForwardContext& context) const final;
  Tensor leave(const Stream& stream, ForwardContext& context) const final;

 protected:
  /// Coefficients for each token.
  struct Coefficients {
    Tensor read;   // (tokens, n)
    Tensor mix;    // (tokens, n, n)
    Tensor write;  // (tokens, n)
  };

  /// Adds the norms of the sub-layers; a scheme's constructor calls add_final_norm last.
  HiddenVectorsScheme(Parameters& parameters, const StackShape& shape, int64_t count);

  /// The coefficients of sub-layer k, from 0, for hidden vectors (tokens, n, d).
  [[nodiscard]] virtual Coefficients coefficients(size_t k, const Tensor& hidden,
                                                  const ForwardContext& context) const = 0;

  [[nodiscard]] const StackShape& shape() const { return shape_; }
  [[nodiscard]] int64_t count() const { return count_; }  // n

 private:
  StackShape shape_;
  int64_t count_;
  SubLayerNorms norms_;
};

}  // namespace plumb
