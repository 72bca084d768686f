// The initialization of AWD-LSTM, Merity et al. 2018, arXiv 1708.02182: U(−1/√n, 1/√n) for the recurrent layers, n
// their size, as torch.nn.LSTM draws them, and U(−0.1, 0.1) for the embedding. Here embeddings are normal with the same
// variance, 0.1²/3, and biases 0.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool kLstmRegistered = initializations().add(
    "lstm",
    "U(−1/√n, 1/√n), n the rows of a matrix, each gate's counting as one; embeddings and output matrix N(0, 0.1²/3)",
    "Merity et al. 2018, arXiv 1708.02182",
    {[](const Parameter& parameter, const ModelDepth&, Random& random) {
       for_each_matrix(parameter, [&](const Tensor& matrix, int64_t, int64_t fan_out) {
         fill_uniform(matrix, 1 / std::sqrt(static_cast<double>(fan_out)), random);
       });
     },
     [](const Parameter& parameter, const ModelDepth&) {
       return 0.1 * std::sqrt(static_cast<double>(parameter.value.size(1)) / 3);
     }});

}  // namespace
}  // namespace plumb
