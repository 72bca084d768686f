// The fast weight programmer, Schmidhuber 1992, "Learning to control fast-weight memories: an alternative to dynamic
// recurrent networks" (Neural Computation 4(1); report FKI-147-91, 1991): a slow net emits a "from" pattern k and a
// "to" pattern v for every input and adds their outer product to the weights of the fast net, which maps the input's q
// to its output:
//   S ← S + k·vᵀ;  y = Sᵀ·q.  It has neither a feature map nor normalization.
#include "plumb/nn/attention/fast_weights.h"

namespace plumb {
namespace {

const bool kFwp1991Registered = attentions().add(
    "fwp-1991", "S ← S + k·vᵀ, y = Sᵀq", "Schmidhuber 1992, Neural Computation 4(1), 131–139; report FKI-147-91, 1991",
    [](Parameters&, const AttentionShape& shape, const Options&) {
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::sum, shape.heads.size,
                                           [](const Tensor& x) { return x; });
    });

}  // namespace
}  // namespace plumb
