// The initialization of AWD-LSTM, Merity et al. 2018, arXiv 1708.02182: U(−1/√n, 1/√n) for the recurrent layers, n
// their size, as in torch.nn.LSTM, and U(−0.1, 0.1) for the embedding. Here embeddings are normal with the same
// variance, 0.1²/3, and biases 0. The output layer of a classifier is U(−1/√m, 1/√m), m its columns, as in
// torch.nn.Linear.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool kLstmRegistered = initializations().add(
    "lstm",
    "U(−1/√n, 1/√n), n the rows of a matrix, each gate's counting as one, or the columns of a classifier's output "
    "layer; "
    "embeddings and output matrix N(0, 0.1²/3)",
    "Merity et al. 2018, arXiv 1708.02182",
    {[](const Parameter& parameter, const ModelDepth&, Random& random) {
       const bool reads_out = parameter.role == Role::readout;
       for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
         fill_uniform(matrix, 1 / std::sqrt(static_cast<double>(reads_out ? fan_in : fan_out)), random);
       });
     },
     [](const Parameter& parameter, const ModelDepth&) {
       return 0.1 * std::sqrt(static_cast<double>(parameter.value.size(1)) / 3);
     }});

}  // namespace
}  // namespace plumb
