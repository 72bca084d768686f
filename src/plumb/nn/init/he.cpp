// He initialization, He et al. 2015, arXiv 1502.01852: N(0, 2/fan_in), which preserves the variance through ReLUs.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool kHeRegistered =
    initializations().add("he", "N(0, 2/fan_in)", "He et al. 2015, arXiv 1502.01852",
                          {[](const Parameter& parameter, const ModelDepth&, Random& random) {
                            for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t) {
                              fill_normal(matrix, std::sqrt(2.0 / static_cast<double>(fan_in)), random);
                            });
                          }});

}  // namespace
}  // namespace plumb
