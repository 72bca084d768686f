// The setting of the theory in Xiong et al. 2020, arXiv 2002.04745, section 3.3: W^Q = W^K = 0, so that attention is
// the mean over positions; all other matrices Xavier normal. The paper's single head has no output projection, so W^O =
// I.
#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

void fill_weight(const Parameter& parameter, const ModelDepth&, Random& random) {
  if (parameter.role == Role::attention_output) {
    parameter.value.detach().copy_(at::eye(parameter.value.size(0), parameter.value.options()));
    return;
  }
  int part = 0;
  for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
    const bool query_or_key = parameter.role == Role::stacked_qkv && part++ < 2;
    query_or_key ? static_cast<void>(matrix.zero_()) : fill_normal(matrix, xavier_deviation(fan_in, fan_out), random);
  });
}

const bool kTheoryRegistered =
    initializations().add("theory",
                          "W^Q = W^K = 0, so that attention is the mean over positions; W^O = I; "
                          "everything else as in `xavier-normal`; for a single head",
                          "Xiong et al. 2020, arXiv 2002.04745, section 3.3", {fill_weight});

}  // namespace
}  // namespace plumb
