// Fast weights with the sum rule: S ← S + φ(k)·vᵀ.
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

// Linear attention with the features of DPFP-ν, Schlag et al. 2021, arXiv 2102.11174, and the sum rule:
//   S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
const bool kDpfpRegistered = attentions().add(
    "dpfp", "as `linear`, with φ(x) = [r ⊙ roll(r, 1); …; r ⊙ roll(r, ν)], r = relu([x; −x]), ν = `model.dpfp.nu`",
    "Schlag et al. 2021, arXiv 2102.11174",
    [](Parameters&, const AttentionShape& shape, const Options& options) {
      const int64_t nu = options.as<DpfpOptions>().nu;
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::normalized_sum, 2 * nu * shape.heads.size,
                                           [nu](const Tensor& x) { return dpfp(x, nu); });
    },
    Options(DpfpOptions()));

// Linear attention, Katharopoulos et al. 2020, "Transformers are RNNs", arXiv 2006.16236:
//   φ(x) = elu(x) + 1;  S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
const bool kLinearRegistered = attentions().add(
    "linear", "S ← S + φ(k)vᵀ, z ← z + φ(k), y = Sᵀφ(q)/zᵀφ(q), φ(x) = elu(x) + 1",
    "Katharopoulos et al. 2020, arXiv 2006.16236", [](Parameters&, const AttentionShape& shape, const Options&) {
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::normalized_sum, shape.heads.size,
                                           [](const Tensor& x) { return at::elu(x) + 1; });
    });

// The fast weight programmer, Schmidhuber 1992, "Learning to control fast-weight memories: an alternative to dynamic
// recurrent networks" (Neural Computation 4(1); report FKI-147-91, 1991): a slow net emits a "from" pattern k and a
// "to" pattern v for every input and adds their outer product to the weights of the fast net, which maps the input's q
// to its output:
//   S ← S + k·vᵀ;  y = Sᵀ·q.  It has neither a feature map nor normalization.
const bool kFwp1991Registered = attentions().add(
    "fwp-1991", "S ← S + k·vᵀ, y = Sᵀq", "Schmidhuber 1992, Neural Computation 4(1), 131–139; report FKI-147-91, 1991",
    [](Parameters&, const AttentionShape& shape, const Options&) {
      return std::make_unique<FastWeights>(shape, FastWeights::Rule::sum, shape.heads.size,
                                           [](const Tensor& x) { return x; });
    });

}  // namespace
}  // namespace plumb
