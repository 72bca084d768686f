// GPT-2's initialization, Radford et al. 2019: N(0, 0.02²), embeddings and output matrix included, with the matrices
// that write to the stream (the last ones of attention and of the feed-forward sub-layer) divided by √(number of
// sub-layers of their stack): 2 per layer, 3 in a decoder with cross-attention. The division is the paper's; the code
// that the authors published (src/model.py) lacks it, and draws positions from N(0, 0.01²), where the Transformers
// library and Plumb use 0.02². GPT-2 does not multiply its embeddings: model.embedding_factor = 1.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

double sub_layers(const Parameter& parameter, const ModelDepth& depth) {
  const int64_t count =
      in_decoder(parameter) ? (depth.encoder_layers > 0 ? 3 : 2) * depth.decoder_layers : 2 * depth.encoder_layers;
  return static_cast<double>(count);
}

const bool kGpt2Registered = initializations().add(
    "gpt-2",
    "N(0, 0.02²), embeddings and output matrix too; the last matrix of each sub-layer divided by √(sub-layers of the "
    "stack); GPT-2 has `model.embedding_factor` = 1",
    "Radford et al. 2019",
    {[](const Parameter& parameter, const ModelDepth& depth, Random& random) {
       const bool writes = parameter.role == Role::attention_output || parameter.role == Role::feed_forward_output;
       fill_normal(parameter.value.detach(), writes ? 0.02 / std::sqrt(sub_layers(parameter, depth)) : 0.02, random);
     },
     [](const Parameter& parameter, const ModelDepth&) {
       return 0.02 * std::sqrt(static_cast<double>(parameter.value.size(1)));
     }});

}  // namespace
}  // namespace plumb
