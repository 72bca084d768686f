#include "plumb/analysis/token_similarity.h"

namespace plumb {

double sum_of_cosines(const Tensor& x, const Ragged& layout) {
  const at::NoGradGuard no_graph;
  const Tensor wide = x.detach().to(at::kDouble);
  const Tensor units = wide / wide.norm(2, 1, true);
  double cosines = 0;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    // ‖Σ_i u_i‖² sums the cosines of all pairs, including each token with itself, which adds 1.
    const Tensor sum = units.narrow(0, layout.begin(s), layout.length(s)).sum(0);
    cosines += sum.square().sum().item<double>() - static_cast<double>(layout.length(s));
  }
  return cosines;
}

double pairs_of_tokens(const Ragged& layout) {
  double pairs = 0;
  for (int64_t s = 0; s < layout.sequences(); ++s)
    pairs += static_cast<double>(layout.length(s)) * static_cast<double>(layout.length(s) - 1);
  return pairs;
}

void TokenSimilarity::see(const LayerId& layer, const Tensor& x, const Ragged& layout) {
  Sums& sums = sums_[layer];
  sums.cosines += sum_of_cosines(x, layout);
  sums.pairs += pairs_of_tokens(layout);
}

void TokenSimilarity::see(Model& model, const Batch& batch, ForwardContext& context) {
  const at::NoGradGuard no_graph;
  std::map<LayerId, Tensor> read;
  context.watch([&read](const ActivationPoint& point, const Tensor& activation) {
    const auto& [id, what] = point;
    if (what == Point::input && id.layer) read.try_emplace({id.stack, id.layer}, activation);
    if (what == Point::result) read[{id.stack}] = activation;
  });
  model.states(batch, context);
  context.watch({});
  for (const auto& [layer, x] : read)
    see(layer, x, layer.stack == StackKind::encoder ? batch.source_layout : batch.target_layout);
}

std::map<LayerId, double> TokenSimilarity::means() const {
  std::map<LayerId, double> all;
  for (const auto& [layer, sums] : sums_) all[layer] = sums.cosines / sums.pairs;
  return all;
}

}  // namespace plumb
