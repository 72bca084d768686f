// Linear attention with the features of DPFP-ν, Schlag et al. 2021, arXiv 2102.11174, and the sum rule:
//   S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
#include "plumb/nn/attention/dpfp.h"

#include "plumb/nn/attention/fast_weights.h"

namespace plumb {

void describe(Fields& field, DpfpOptions& options) {
  field("nu", options.nu, "ν of `dpfp` and `delta`", within(1, 10'000));
}

DpfpOptions dpfp_options(const VariantOptions& options) {
  return options_of(options, "dpfp", attentions().at("dpfp")).as<DpfpOptions>();
}

namespace {

const bool kDpfpRegistered = attentions().add(
    "dpfp", "as `linear`, with φ(x) = [r ⊙ roll(r, 1); …; r ⊙ roll(r, ν)], r = relu([x; −x]), ν = `model.dpfp.nu`",
    "Schlag et al. 2021, arXiv 2102.11174",
    [](Parameters&, const AttentionShape& shape, const Options& options) {
      const int64_t nu = options.as<DpfpOptions>().nu;
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::normalized_sum, 2 * nu * shape.heads.size,
                                           [nu](const Tensor& x) { return dpfp(x, nu); });
    },
    Options(DpfpOptions()));

}  // namespace
}  // namespace plumb
