// Products of the loss's Hessian with vectors, by reverse over reverse (Pearlmutter 1994; PyHessian, arXiv 1912.07145).
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// The loss of several micro-batches taken as one batch, L = (Σ over all target tokens of their loss) / (target
/// tokens), and its gradient, (parameters).
struct MeanLoss {
  double loss = 0;
  Tensor gradient;
};
MeanLoss mean_loss(Model& model, const std::vector<Batch>& micro_batches, double label_smoothing = 0);

struct HessianOptions {
  double label_smoothing = 0;
  /// Bytes for the graphs of gradients that are kept from product to product. With its graph kept, a micro-batch costs
  /// two gradients a product; those for which there is no room are differentiated anew and cost three.
  int64_t graph_memory = int64_t{6} << 30;
};

/// Some of a model's parameters: rows and columns of a diagonal block of the Hessian.
struct ParameterBlock {
  LayerId id;
  std::vector<size_t> places;  // in Parameters::all(), ascending
  int64_t size = 0;            // elements
};

/// A block for every layer, from the first of the encoder to the last of the decoder; embeddings, positions and the
/// norms after the last layers belong to none.
std::vector<ParameterBlock> layer_blocks(const Parameters& parameters);

/// The Hessian of the mean loss as a linear operator on flat vectors (parameters), in the model's element type, without
/// dropout. The model must outlive the operator, and its parameters must not change meanwhile.
class HessianOperator {
 public:
  /// Throws Error if the micro-batches hold no target token.
  HessianOperator(Model& model, std::vector<Batch> micro_batches, const HessianOptions& options = {});

  /// v → H·v = ∂/∂θ (∂L/∂θ · v). Throws Error if v is not a vector of size() elements of the model's type.
  Tensor operator()(const Tensor& v) { return multiply({v}).front(); }

  /// The products with several vectors. A micro-batch whose graph is not kept is differentiated once for all of them.
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors);

  /// The products of diagonal blocks with a vector each, (blocks[i].size) elements long: v_i → H_ii·v_i. Exact, and
  /// cheaper than a product with H for each: of the graph of a gradient, a block needs only what lies between it and
  /// the loss, and there only what carries its own tangent.
  std::vector<Tensor> multiply_blocks(const std::vector<ParameterBlock>& blocks, const std::vector<Tensor>& vectors);

  [[nodiscard]] int64_t size() const { return parameters_.count(); }
  [[nodiscard]] int64_t tokens() const { return tokens_; }

  /// How many micro-batches keep their graph: the first ones.
  [[nodiscard]] size_t kept() const { return kept_.size(); }

 private:
  std::vector<Tensor> differentiable_gradient(const Batch& batch);
  template <typename Work>
  void for_each_gradient(const Work& work);
  void require_vector(const Tensor& v, int64_t size) const;
  void keep_graphs(int64_t budget);

  Model& model_;
  const Parameters& parameters_;
  std::vector<Batch> micro_batches_;
  double label_smoothing_;
  int64_t tokens_ = 0;
  std::vector<std::vector<Tensor>> kept_;  // [micro-batch]: its share of the gradient, by parameter, with graph
};

}  // namespace plumb
