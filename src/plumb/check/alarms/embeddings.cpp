// The size of token embeddings relative to that of the positions added to them.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

double root_mean_square(const Tensor& x) {
  return std::sqrt(x.detach().to(at::kDouble).square().mean().item<double>());
}

/// Of the positions that are added to embeddings; empty if there are none.
std::optional<double> size_of_positions(const PlannedRun& planned) {
  if (planned.model.config().positions == "sinusoidal") return std::sqrt(0.5);  // sine and cosine
  for (const Parameter& each : planned.model.parameters().all()) {
    if (each.role == Role::position && each.name.find("_position") != std::string::npos)
      return root_mean_square(each.value);
  }
  return std::nullopt;
}

std::vector<Finding> measure_embeddings(const PlannedRun& planned) {
  const ModelConfig& config = planned.model.config();
  if (kind_of(config).recurrent) return {};
  const std::optional<double> positions = size_of_positions(planned);
  if (!positions || *positions == 0) return {};
  const double factor =
      config.embedding_factor > 0 ? config.embedding_factor : std::sqrt(static_cast<double>(config.d_model));
  std::vector<Finding> findings;
  for (const Parameter& each : planned.model.parameters().all()) {
    if (!each.name.ends_with("_embed.weight")) continue;
    const double tokens = factor * root_mean_square(each.value);
    // Vaswani et al. multiply by √d, so that both are about 1. Below a fifth, tokens are 4 % of the energy: after the
    // first norm, sequences of the same length look alike.
    Finding finding{.where = each.name, .value = tokens / *positions, .threshold = 0.2};
    finding.raised = !(finding.value >= finding.threshold);
    finding.text = fmt::format("embeddings of RMS {:.3g} are {:.2g} times as large as the positions added to them",
                               tokens, finding.value);
    finding.advice = "model.embedding_factor = 0, which multiplies embeddings by √d_model";
    findings.push_back(finding);
  }
  return findings;
}

[[maybe_unused]] const bool kEmbeddingsAlarm =
    alarms().add("embeddings", "the size of embeddings relative to the positions added to them",
                 "Vaswani et al. 2017, arXiv 1706.03762, section 3.4", {measure_embeddings});

}  // namespace
}  // namespace plumb::check
