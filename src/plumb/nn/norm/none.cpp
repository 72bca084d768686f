// No normalization:  y = x.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

const bool kNoneRegistered =
    norms().add("none", "y = x", "", [](Parameters&, const std::string&, int64_t, double) {
      return std::make_unique<TokenNorm>([](const Tensor& x) { return x; });
    });

}  // namespace
}  // namespace plumb
