// No normalization:  y = x.
#include "plumb/nn/norm/norm.h"

namespace plumb {
namespace {

class NoNorm final : public Norm {
 public:
  [[nodiscard]] Tensor operator()(const Tensor& x, const ForwardContext&) const override { return x; }
};

const bool kNoneRegistered = norms().add(
    "none", "y = x", "", [](Parameters&, const std::string&, int64_t, double) { return std::make_unique<NoNorm>(); });

}  // namespace
}  // namespace plumb
