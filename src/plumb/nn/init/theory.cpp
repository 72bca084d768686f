// The setting of the theory in Xiong et al. 2020, arXiv 2002.04745, section 3.3: W^Q = W^K = 0, so that attention is
// the mean over positions; all other matrices Xavier normal. The paper's single head has no output projection, so W^O =
// I.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool registered = initialisations().add(
    "theory", "W^Q = W^K = 0, W^O = I, the rest N(0, 2 / (fan_in + fan_out)); single head",
    "Xiong et al. 2020, arXiv 2002.04745", [](const Parameter& parameter, Random& random) {
      if (parameter.role == Role::attention_output) {
        parameter.value.detach().copy_(at::eye(parameter.value.size(0), parameter.value.options()));
        return;
      }
      int part = 0;
      for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
        const bool query_or_key = parameter.role == Role::stacked_qkv && part++ < 2;
        query_or_key ? static_cast<void>(matrix.zero_())
                     : fill_normal(matrix, std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)), random);
      });
    });

}  // namespace
}  // namespace plumb
