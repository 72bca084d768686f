// Linear attention, Katharopoulos et al. 2020, "Transformers are RNNs", arXiv 2006.16236:
//   φ(x) = elu(x) + 1;  S ← S + φ(k)·vᵀ, z ← z + φ(k);  y = Sᵀ·φ(q) / zᵀ·φ(q).
#include "plumb/nn/attention/fast_weights.h"

namespace plumb {
namespace {

class LinearFeatures final : public FastWeights {
 public:
  explicit LinearFeatures(const AttentionShape& shape)
      : FastWeights(shape, Rule::normalized_sum), size_(shape.heads.size) {}

 protected:
  int64_t features() const override { return size_; }
  Tensor query_features(const Tensor& query, const ForwardContext&) const override { return at::elu(query) + 1; }
  Tensor key_features(const Tensor& key, const ForwardContext&) const override { return at::elu(key) + 1; }

 private:
  int64_t size_;
};

const bool kLinearRegistered = attentions().add(
    "linear", "S ← S + φ(k)vᵀ, z ← z + φ(k), y = Sᵀφ(q)/zᵀφ(q), φ(x) = elu(x) + 1",
    "Katharopoulos et al. 2020, arXiv 2006.16236",
    [](Parameters&, const AttentionShape& shape, const Options&) { return std::make_unique<LinearFeatures>(shape); });

}  // namespace
}  // namespace plumb
