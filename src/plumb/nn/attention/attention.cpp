#include "plumb/nn/attention/attention.h"

namespace plumb {

Registry<AttentionFactory>& attentions() {
  static Registry<AttentionFactory> registry(
      "attention",
      {.title = "Attention",
       .key = "model.attention",
       .before =
           "Applies to every self- and cross-attention, for each head; size is the head size. With `model.kv_heads`, "
           "groups of query heads share keys and values. All kinds except `softmax` are fast weights: each position "
           "writes φ(k) and v to a matrix S and reads it with φ(q), at a cost linear in length. In causal attention, "
           "a position reads after writing; in any other attention, including cross-attention, all positions are "
           "written in order before any is read.",
       .after = "`fwp-1991` is linear attention, of 1991: y = Σ v·(k·q), with identity features and without the "
                "normalization; divided by Σ k·q, it is `linear` with φ(x) = x. The random directions of `favor` are a "
                "function of the layer's name and the redraw index; outside "
                "training, the first ones are used, so that validation is conditional on one draw, while training sees "
                "many. `model.qk_norm`, the name of a norm, normalizes the queries and keys of each head, with "
                "separate gains, before their product (Henry et al. 2020, arXiv 2010.04245; Dehghani et al. 2023, "
                "arXiv 2302.05442)."});
  return registry;
}

std::unique_ptr<Attention> make_attention(const std::string& name, Parameters& parameters,
                                          const AttentionShape& shape) {
  return make_variant(attentions(), "model.", name, shape.options, parameters, shape);
}

}  // namespace plumb
