// The size of token embeddings relative to that of the positions added to them.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "plumb/check/alarm.h"
#include "plumb/model/kind.h"

namespace plumb::check {
namespace {

double root_mean_square(const Tensor& x) {
  return std::sqrt(x.detach().to(at::kDouble).square().mean().item<double>());
}

/// Of the positions that are added to embeddings; empty if there are none.
std::optional<double> size_of_positions(const Evidence& evidence) {
  if (evidence.model.config().positions == "sinusoidal") return std::sqrt(0.5);  // sine and cosine
  for (const Parameter& each : evidence.model.parameters().all()) {
    if (each.role == Role::position && each.name.find("_position") != std::string::npos)
      return root_mean_square(each.value);
  }
  return std::nullopt;
}

std::vector<Reason> look_at_embeddings(const Evidence& evidence) {
  const ModelConfig& config = evidence.model.config();
  if (kind_of(config).recurrent) return {};
  const std::optional<double> positions = size_of_positions(evidence);
  if (!positions || *positions == 0) return {};
  const double factor =
      config.embedding_factor > 0 ? config.embedding_factor : std::sqrt(static_cast<double>(config.d_model));
  std::vector<Reason> reasons;
  for (const Parameter& each : evidence.model.parameters().all()) {
    if (!each.name.ends_with("_embed.weight")) continue;
    const double tokens = factor * root_mean_square(each.value);
    // Vaswani et al. multiply by √d, so that both are about 1. Below a fifth, tokens are 4 % of the energy: after the
    // first norm, sequences of the same length look alike.
    Reason reason{.place = each.name, .value = tokens / *positions, .threshold = 0.2};
    reason.raised = !(reason.value >= reason.threshold);
    reason.text = fmt::format("embeddings of RMS {:.3g} are {:.2g} times as large as the positions added to them",
                              tokens, reason.value);
    reason.advice = "model.embedding_factor = 0, which multiplies embeddings by √d_model";
    reasons.push_back(reason);
  }
  return reasons;
}

[[maybe_unused]] const bool kEmbeddingsLookedAt =
    alarms().add("embeddings", "the size of embeddings relative to the positions added to them",
                 "Vaswani et al. 2017, arXiv 1706.03762, section 3.4", {look_at_embeddings});

}  // namespace
}  // namespace plumb::check
