#include "plumb/analysis/gradient.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/analysis/batch_share.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

double find(const NormByParameter& norms, const std::string& parameter) {
  if (const double* norm = find_value(norms, parameter)) return *norm;
  std::vector<std::string> names;
  for (const auto& [name, norm] : norms) names.push_back(name);
  throw Error(fmt::format("the model has no parameter '{}'", parameter), did_you_mean(parameter, names));
}

/// Of the sums of these gradients over the processes.
NormByParameter norms_of(const Parameters& parameters, std::vector<Tensor> gradient, const Group& group,
                         const LayerDivision* division) {
  gradient = group.sum_coalesced(gradient);
  if (division != nullptr) division->sum_gradients(gradient);
  NormByParameter norms;
  std::vector<double> pieces;  // squared norms of those that are divided
  for (size_t i = 0; i < gradient.size(); ++i) {
    norms.emplace_back(parameters.all()[i].name, gradient[i].norm(2, at::kDouble).item<double>());
    if (division != nullptr && division->is_divided(i)) pieces.push_back(norms.back().second * norms.back().second);
  }
  if (division == nullptr) return norms;
  const std::vector<double> squares = division->group().sums(pieces);
  for (size_t i = 0, k = 0; i < norms.size(); ++i) {
    if (division->is_divided(i)) norms[i].second = std::sqrt(squares[k++]);
  }
  return norms;
}

/// scale · Σ of the loss with label smoothing ε = 0.1.
double smoothed_loss(Model& model, const Batch& batch, double scale, const LossFunction& loss) {
  const at::NoGradGuard no_graph;
  ForwardContext context(Pass::measurement);
  return loss(model, batch, {.label_smoothing = 0.1, .scale = scale}, context).value.item<double>();
}

}  // namespace

double GradientProfile::norm(const std::string& parameter) const { return find(norm_by_parameter, parameter); }
double GradientProfile::batch_mean_norm(const std::string& parameter) const {
  return find(batch_mean_norm_by_parameter, parameter);
}

GradientProfile measure_gradients(Model& model, const std::vector<Batch>& batches, double label_smoothing,
                                  const Observer& observer, const LossFunction& loss, const Group& group,
                                  const LayerDivision* division) {
  const Parameters& parameters = model.parameters();
  const double weight = total_weight(batches);
  const at::AutoGradMode with_graph(true);
  const std::vector<Tensor> values = parameters.values();
  std::vector<Tensor> token_mean;
  std::vector<Tensor> batch_mean;
  for (const Tensor& value : values) {
    token_mean.push_back(at::zeros_like(value));
    batch_mean.push_back(at::zeros_like(value));
  }
  GradientProfile profile;
  for (const Batch& batch : share_of_batches(batches, group)) {
    const double batch_weight = batch.weight();
    if (batch_weight == 0) continue;
    profile.loss_label_smoothing += smoothed_loss(model, batch, 1 / weight, loss);
    ForwardContext context(Pass::measurement);
    if (observer) context.watch(observer);
    const Loss found = loss(model, batch, {.label_smoothing = label_smoothing, .scale = 1 / batch_weight}, context);
    profile.loss += found.nll / weight;
    const std::vector<Tensor> gradient = gradients({found.value}, values, {});
    const at::NoGradGuard no_graph;
    for (size_t i = 0; i < gradient.size(); ++i) {
      token_mean[i].add_(gradient[i], batch_weight / weight);
      batch_mean[i].add_(gradient[i], 1 / static_cast<double>(batches.size()));
    }
  }
  const std::vector<double> losses = group.sums({profile.loss, profile.loss_label_smoothing});
  profile.loss = losses[0];
  profile.loss_label_smoothing = losses[1];
  profile.norm_by_parameter = norms_of(parameters, token_mean, group, division);
  profile.batch_mean_norm_by_parameter = norms_of(parameters, batch_mean, group, division);
  for (const auto& [name, norm] : profile.norm_by_parameter) profile.total += norm * norm;
  profile.total = std::sqrt(profile.total);
  return profile;
}

std::string feed_forward_matrix(const LayerId& layer, int matrix) {
  return fmt::format("{}.linear{}.weight", to_string(LayerId{layer.stack, layer.layer}), matrix);
}

}  // namespace plumb
