// SmallInit, Nguyen & Salazar 2019, arXiv 1910.05895: every weight matrix is drawn as Xavier would draw a feed-forward
// matrix of width 4d: N(0, 2/(d + 4d)), where d is the smaller dimension of the matrix.
#include <algorithm>
#include <cmath>

#include "plumb/nn/init/init.h"

namespace plumb {
namespace {

const bool kSmallInitRegistered =
    initializations().add("small-init", "N(0, 2/(5d))", "Nguyen & Salazar 2019, arXiv 1910.05895",
                          {[](const Parameter& parameter, const ModelDepth&, Random& random) {
                            for_each_matrix(parameter, [&](const Tensor& matrix, int64_t fan_in, int64_t fan_out) {
                              const auto d = static_cast<double>(std::min(fan_in, fan_out));
                              fill_normal(matrix, std::sqrt(2.0 / (5 * d)), random);
                            });
                          }});

}  // namespace
}  // namespace plumb
