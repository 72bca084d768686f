// Xavier initialization, Glorot & Bengio 2010: variance 2/(fan_in + fan_out), normal or uniform. fairseq draws queries,
// keys and values with 1/√2 of that deviation (modules/multihead_attention.py, reset_parameters), where their widths
// are equal; PyTorch's nn.MultiheadAttention does the same by drawing the three as one matrix (3d, d).
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

const bool fairseq_registered = initializations().add(
    "fairseq",
    "`xavier-uniform`; queries, keys and values divided by √2, as in fairseq and PyTorch's MultiheadAttention",
    "Ott et al. 2019, arXiv 1904.01038", {[](const Parameter& parameter, const ModelDepth&, Random& random) {
      const double factor = parameter.role == Role::stacked_qkv ? std::sqrt(1.5) : std::sqrt(3.0);
      for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
        fill_uniform(matrix, factor * xavier_deviation(fan_in, fan_out), random);
      });
    }});

}  // namespace
}  // namespace plumb
