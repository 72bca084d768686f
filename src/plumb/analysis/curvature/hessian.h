// Products of the loss's Hessian with vectors, by reverse over reverse (Pearlmutter 1994; PyHessian, arXiv 1912.07145).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/analysis/curvature/function_hessian.h"
#include "plumb/analysis/loss_function.h"
#include "plumb/nn/layer_division.h"
#include "plumb/nn/layer_id.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// The mean loss over several micro-batches, L = (Σ over all target tokens of weight · loss) / (Σ weight), and its
/// gradient, (parameters). Neither depends on how a batch is divided, unless the model has norms over a batch
/// (batchnorm, powernorm), which use the statistics of each micro-batch.
///
/// The processes of a group share the work: each differentiates some of the micro-batches, and all get the same sums.
/// They must have the same parameters and pass the same micro-batches.
struct MeanLoss {
  double loss = 0;
  double nll = 0;  // the mean negative log-likelihood: the loss without label smoothing
  Tensor gradient;
};
MeanLoss mean_loss(Model& model, const std::vector<Batch>& micro_batches, double label_smoothing = 0,
                   const LossFunction& loss = model_loss, const Group& group = {});

struct HessianOptions {
  double label_smoothing = 0;
  /// Bytes for gradient graphs kept between products. A micro-batch whose graph is kept costs two gradients per
  /// product; one whose graph does not fit is differentiated again and costs three. Processes of the group on the same
  /// machine share this budget.
  int64_t graph_memory = int64_t{6} << 30;
  int64_t reserved_memory = 0;  // bytes that the graphs leave free besides, such as for a basis
  LossFunction loss = model_loss;
  /// The processes that share each product: each takes its part of the micro-batches. They must have the same
  /// parameters, pass the same micro-batches, and multiply the same vectors in the same order.
  Group group{};
  /// How the model is divided among processes that compute it together (Model::divide); null: each has all of it. Then
  /// `group` are processes with the same part. Vectors are over this process's parameters (divided_vectors.h).
  const LayerDivision* division = nullptr;
};

/// A subset of a model's parameters: the rows and columns of a diagonal block of the Hessian.
struct ParameterBlock {
  LayerId id;
  std::vector<size_t> places;  // in Parameters::all(), ascending
  int64_t size = 0;            // elements
};

/// One block per layer, from the first of the encoder to the last of the decoder; embeddings, positions and final norms
/// are in none.
std::vector<ParameterBlock> layer_blocks(const Parameters& parameters);

/// The Hessian of the mean loss L as a linear operator on flat vectors (parameters), in the model's element type,
/// without dropout. The model must outlive the operator, and its parameters must not change during its lifetime.
class HessianOperator {
 public:
  /// Throws Error if the micro-batches of all processes together have no target token.
  HessianOperator(Model& model, const std::vector<Batch>& micro_batches, const HessianOptions& options = {});

  /// v → H·v = ∂/∂θ (∂L/∂θ · v). Throws Error if v is not a vector of size() elements of the model's type.
  Tensor operator()(const Tensor& v) { return multiply({v}).front(); }

  /// The products with several vectors. A micro-batch whose graph is not kept is differentiated once for all of them.
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors);

  /// The products of diagonal blocks with one vector each, (blocks[i].size) elements long: v_i → H_ii·v_i. Exact, and
  /// cheaper than one product with H for each: a block needs only the part of a gradient's graph between it and the
  /// loss.
  std::vector<Tensor> multiply_blocks(const std::vector<ParameterBlock>& blocks, const std::vector<Tensor>& vectors);

  [[nodiscard]] int64_t size() const { return hessian_.size(); }
  /// Number of target tokens in all micro-batches.
  [[nodiscard]] int64_t tokens() const { return tokens_; }

  /// Number of this process's micro-batches that keep their graph: the first ones.
  [[nodiscard]] size_t kept() const { return hessian_.kept(); }

 private:
  [[nodiscard]] std::vector<Tensor> summed(std::vector<Tensor> products) const;

  int64_t tokens_ = 0;
  Group group_;
  FunctionHessian hessian_;
};

}  // namespace plumb
