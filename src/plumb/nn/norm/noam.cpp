// tensor2tensor's "noam" norm: y = √d·x/√(‖x‖² + eps), without parameters. Equals RMSNorm without gains and with eps/d.
#include "plumb/nn/norm/norm.h"
#include "plumb/ops/norm.h"

namespace plumb {
namespace {

const bool kNoamRegistered =
    norms().add("noam", "y = √d·x/√(‖x‖² + eps)", "tensor2tensor, `layers/common_layers.py`",
                [](Parameters&, const std::string&, int64_t width, double eps) {
                  return std::make_unique<TokenNorm>([eps = eps / static_cast<double>(width)](const Tensor& x) {
                    return ops::rms_norm(x, at::ones({x.size(1)}, x.options()), eps);
                  });
                });

}  // namespace
}  // namespace plumb
