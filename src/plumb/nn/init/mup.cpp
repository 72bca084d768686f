// The maximal update parametrization's initialization, Yang et al. 2022, arXiv 2203.03466, table 3: variances 1/fan_in,
// and 1/fan_in² for an output matrix that is not shared with the embedding. Embeddings have constant variance at the
// input: N(0, 1/d) times √d (model.embedding_factor = 0). Learning rates must decrease with the width, as with
// train.parametrization = "mup" (run/parametrization.h).
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool kMupRegistered = initializations().add(
    "mup",
    "N(0, 1/fan_in); an output matrix apart from the embedding N(0, 1/d²); for learning rates ∝ 1/width, "
    "`train.parametrization = \"mup\"`",
    "Yang et al. 2022, arXiv 2203.03466, table 3",
    {[](const Parameter& parameter, const ModelDepth&, Random& random) {
       for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t) {
         const auto inputs = static_cast<double>(fan_in);
         fill_normal(matrix, parameter.role == Role::readout ? 1 / inputs : 1 / std::sqrt(inputs), random);
       });
     },
     [](const Parameter& parameter, const ModelDepth&) {
       const auto width = static_cast<double>(parameter.value.size(1));
       return parameter.name == "output.weight" ? 1 / std::sqrt(width) : 1.0;
     }});

}  // namespace
}  // namespace plumb
