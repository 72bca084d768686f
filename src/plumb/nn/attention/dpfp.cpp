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

class Dpfp final : public FastWeights {
 public:
  Dpfp(const AttentionShape& shape, const DpfpOptions& options)
      : FastWeights(shape, Rule::normalized_sum), size_(shape.heads.size), nu_(options.nu) {}

 protected:
  int64_t features() const override { return 2 * nu_ * size_; }
  Tensor query_features(const Tensor& query, const ForwardContext&) const override { return dpfp(query, nu_); }
  Tensor key_features(const Tensor& key, const ForwardContext&) const override { return dpfp(key, nu_); }

 private:
  int64_t size_;
  int64_t nu_;
};

const bool kDpfpRegistered = attentions().add(
    "dpfp", "as `linear`, with φ(x) = [r ⊙ roll(r, 1); …; r ⊙ roll(r, ν)], r = relu([x; −x]), ν = `model.dpfp.nu`",
    "Schlag et al. 2021, arXiv 2102.11174",
    [](Parameters&, const AttentionShape& shape, const Options& options) {
      return std::make_unique<Dpfp>(shape, options.as<DpfpOptions>());
    },
    Options(DpfpOptions()));

}  // namespace
}  // namespace plumb
