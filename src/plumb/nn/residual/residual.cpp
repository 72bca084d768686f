#include "plumb/nn/residual/residual.h"

#include "plumb/nn/residual/sub_layer_norms.h"
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {

Tensor watched_forward(const SubLayer& f, const Tensor& input, ForwardContext& context) {
  context.show({f.id, Point::input}, input);
  Tensor output = f.forward(input);
  context.show({f.id, Point::output}, output);
  return output;
}

void ResidualScheme::add_final_norm(Parameters& parameters, const StackShape& shape) {
  final_norm_ = make_final_norm(parameters, shape);
}

Registry<ResidualFactory>& residual_schemes() {
  static Registry<ResidualFactory> registry(
      "residual scheme",
      {.title = "Residual schemes",
       .key = "model.residual",
       .before = "x is the stream, f a sub-layer (self-attention, cross-attention or feed-forward).",
       .after =
           "A scheme can also be written as tensor2tensor's two strings (`layers/common_layers.py`) with a slash "
           "between, PRE/POST, read left to right: PRE is applied to the input of f, POST to its output y. `d` is "
           "dropout, `n` the norm of the model, `r` RMSNorm (Marian); in POST only, `a` is x + y, `z` is x + γ·y with "
           "a trained scalar γ, initially 0, and `h` (Marian) is σ(t)∘y + (1 − σ(t))∘x with t = W·x + b. If PRE is "
           "not empty, each stack ends with PRE once more. `/dan` is `post-ln`, `n/da` is `pre-ln`, `n/dna` is "
           "`sandwich`, `/dz` is `rezero`, `/da` is `plain`, `/dn` is `no-residual`. tensor2tensor's "
           "`basic_params1` is `/dan`, with the remark that `n/da` seems better for models that are harder to learn "
           "and should probably be the default; its `transformer_base_v2` sets `n/da`. Some schemes prescribe more "
           "than "
           "the stream. `hybridnorm` and `hybridnorm-star` normalize the queries, keys and values of each head; "
           "`model.qk_norm`, if set, replaces the first two norms. The last sub-layer of a layer counts as "
           "feed-forward. `ngpt` keeps embeddings and matrices made of vectors of length 1, scales queries and keys "
           "to length 1 after their rotation and multiplies both by a trained vector in each head, initially 1, "
           "unless `model.qk_norm` is set, and multiplies each logit by a trained scale, initially 1. It deviates "
           "from the paper in the scales of the feed-forward sub-layer, s_u and s_v, which stay at their initial "
           "values. The paper's model also has rotary positions, `swiglu`, no biases, and an output matrix of its "
           "own. `plumb probe` shows the sum of the hidden vectors of `hyper-connections` and `mhc`, x of "
           "`siamesenorm` and `residual-dual`, and what the next sub-layer of `attnres` reads."});
  return registry;
}

std::unique_ptr<ResidualScheme> make_residual_scheme(const std::string& name, Parameters& parameters,
                                                     const StackShape& shape) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos)
    return make_tensor2tensor_scheme(name.substr(0, slash), name.substr(slash + 1), parameters, shape);
  return make_variant(residual_schemes(), "model.", name, shape.options, parameters, shape);
}

Prescription prescription_of(const std::string& name) {
  return name.find('/') == std::string::npos ? residual_schemes().at(name).make.prescribes() : Prescription();
}

}  // namespace plumb
