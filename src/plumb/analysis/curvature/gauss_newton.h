// Products with the Gauss–Newton part of the loss's Hessian (Schraudolph 2002; Martens 2010).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/logit_jacobian.h"

namespace plumb {

/// H = G + R: with z the logits and ℓ the loss as a function of them,
///   G = Jᵀ·(∂²ℓ/∂z²)·J, positive semidefinite,  and  R = Σ_i ∂ℓ/∂z_i · ∂²z_i/∂θ²,
/// for the mean cross-entropy over all target tokens of the micro-batches, Σ_i w_i·ℓ_i/Σ_i w_i. For one token ∂²ℓ/∂z² =
/// diag(p) − ppᵀ, with p the softmax of z, for any label and label smoothing. Without dropout. The model must outlive
/// the operator, and its parameters must not change during its lifetime.
class GaussNewtonOperator {
 public:
  /// Keeps the graphs of as many micro-batches as fit into `graph_memory` bytes; the others are rebuilt for each
  /// product. Throws Error if the micro-batches have no target token. The processes of a group share each product, as
  /// with HessianOptions::group, and those on the same machine share the memory.
  GaussNewtonOperator(Model& model, std::vector<Batch> micro_batches, int64_t graph_memory = int64_t{6} << 30,
                      Group group = {});

  /// v → G·v; (parameters). Throws Error if v has another size or type.
  Tensor operator()(const Tensor& v);

  /// v → G_bb·v for a diagonal block; (block.size).
  Tensor multiply_block(const ParameterBlock& block, const Tensor& v);

  [[nodiscard]] int64_t size() const { return model_.parameters().count(); }
  /// Number of this process's micro-batches that keep their graphs: the first ones.
  [[nodiscard]] size_t kept() const { return kept_.size(); }

 private:
  /// One micro-batch.
  struct Part {
    OutputJacobian jacobian;
    Tensor probabilities;  // (labels, classes)
    Tensor weights;        // (labels, 1): w_i/Σw
  };
  [[nodiscard]] Part part_of(const Batch& batch) const;
  [[nodiscard]] Tensor product(const std::vector<size_t>& places, const Tensor& v);

  Model& model_;
  std::vector<Batch> micro_batches_;  // this process's
  double weight_ = 0;                 // of all labels
  Group group_;
  std::vector<Part> kept_;
};

}  // namespace plumb
