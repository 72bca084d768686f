// ScaleNorm, Nguyen & Salazar 2019, arXiv 1910.05895: y = g·x/√(‖x‖² + eps), with a trained scalar g, initially √d.
// Equals RMSNorm with all gains g/√d and with eps/d.
#include <cmath>

#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

const bool kScalenormRegistered =
    norms().add("scalenorm", "y = g·x/√(‖x‖² + eps), g a trained scalar, initially √d",
                "Nguyen & Salazar 2019, arXiv 1910.05895",
                [](Parameters& parameters, const std::string& prefix, int64_t width, double eps) {
                  const auto d = static_cast<double>(width);
                  const Tensor gain = parameters.add_constant(prefix + ".weight", {1}, std::sqrt(d));
                  return std::make_unique<TokenNorm>([=](const Tensor& x) {
                    return ops::rms_norm(x, (gain / std::sqrt(d)).expand({width}).contiguous(), eps / d);
                  });
                });

}  // namespace
}  // namespace plumb
