// Xavier initialization, Glorot & Bengio 2010: variance 2/(fan_in + fan_out), normal or uniform.
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool normal_registered =
    initializations().add("xavier-normal", "N(0, 2/(fan_in + fan_out))", "Glorot & Bengio 2010",
                          {[](const Parameter& parameter, const ModelDepth&, Random& random) {
                            for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
                              fill_normal(matrix, xavier_deviation(fan_in, fan_out), random);
                            });
                          }});

const bool uniform_registered =
    initializations().add("xavier-uniform", "U(−b, b), b = √(6/(fan_in + fan_out))", "Glorot & Bengio 2010",
                          {[](const Parameter& parameter, const ModelDepth&, Random& random) {
                            for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
                              fill_uniform(matrix, std::sqrt(3.0) * xavier_deviation(fan_in, fan_out), random);
                            });
                          }});

}  // namespace
}  // namespace plumb
