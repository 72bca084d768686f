// Divergence and depth: the gradient of the step that was not taken, by layer.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "plumb/nn/layer_id.h"
#include "plumb/train/diagnosis.h"

namespace plumb {
namespace {

std::vector<Finding> find_gradient_profile(const DivergedRun& diverged) {
  const std::vector<Parameter>& all = diverged.run.model.parameters().all();
  std::map<LayerId, double> squares;  // by layer
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(all[i].name);
    if (!id || !id->layer) continue;
    squares[LayerId{id->stack, id->layer}] +=
        diverged.gradients[i].detach().to(at::kDouble).square().sum().item<double>();
  }
  std::vector<Finding> found;
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    std::vector<std::pair<LayerId, double>> norms;
    for (const auto& [id, square] : squares) {
      if (id.stack == stack) norms.emplace_back(id, std::sqrt(square));
    }
    if (norms.size() < 2 || !std::isfinite(norms.front().second) || !std::isfinite(norms.back().second)) continue;
    found.push_back({fmt::format("the gradient's norm was {:.3g} in {} and {:.3g} in {}", norms.front().second,
                                 to_string(norms.front().first), norms.back().second, to_string(norms.back().first)),
                     ""});
  }
  return found;
}

[[maybe_unused]] const bool kGradientsDiagnosed =
    diagnoses().add("gradients", "the gradient's norm in the first and last layer", "", find_gradient_profile);

}  // namespace
}  // namespace plumb
