#include "plumb/nn/position/position.h"

namespace plumb {

Registry<PositionsFactory>& positions() {
  static Registry<PositionsFactory> registry(
      "position encoding",
      {.title = "Positions",
       .key = "model.positions",
       .before =
           "Added to the embeddings, which are first multiplied by √d (`model.embedding_factor`), or applied within "
           "self-attention: `rotary` rotates queries and keys and works with any attention; `alibi`, `t5` and "
           "`transformer-xl` add to the scores of softmax attention and work with no other. i is the query's "
           "position, j the key's, h = 1 … heads. Cross-attention uses no positions."});
  return registry;
}

std::unique_ptr<Positions> make_positions(const std::string& name, Parameters& parameters, const std::string& prefix,
                                          const PositionShape& shape) {
  return make_variant(positions(), "model.", name, shape.options, parameters, prefix, shape);
}

}  // namespace plumb
