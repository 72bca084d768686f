#include "plumb/analysis/gradient.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/text.h"
#include "plumb/ops/cross_entropy.h"

namespace plumb {
namespace {

double find(const NormByParameter& norms, const std::string& parameter) {
  std::vector<std::string> names;
  for (const auto& [name, norm] : norms) {
    if (name == parameter) return norm;
    names.push_back(name);
  }
  throw Error(fmt::format("the model has no parameter '{}'", parameter),
              fmt::format("did you mean '{}'?", nearest(parameter, names)));
}

NormByParameter norms_of(const Parameters& parameters, const std::vector<Tensor>& gradient) {
  NormByParameter norms;
  for (size_t i = 0; i < gradient.size(); ++i) {
    norms.emplace_back(parameters.all()[i].name, gradient[i].norm(2, at::kDouble).item<double>());
  }
  return norms;
}

}  // namespace

double GradientProfile::norm(const std::string& parameter) const { return find(norm_by_parameter, parameter); }
double GradientProfile::batch_mean_norm(const std::string& parameter) const {
  return find(batch_mean_norm_by_parameter, parameter);
}

GradientProfile measure_gradients(Model& model, const std::vector<Batch>& batches, double label_smoothing,
                                  const Observer& observer) {
  const Parameters& parameters = model.parameters();
  double tokens = 0;
  for (const Batch& batch : batches) tokens += static_cast<double>(batch.target_layout.tokens());
  if (tokens == 0) throw Error("there are no tokens to measure gradients on");

  ForwardContext context(Pass::measurement);
  if (observer) context.watch(observer);
  const at::AutoGradMode with_graph(true);
  const std::vector<Tensor> values = parameters.values();
  std::vector<Tensor> token_mean;
  std::vector<Tensor> batch_mean;
  for (const Tensor& value : values) {
    token_mean.push_back(at::zeros_like(value));
    batch_mean.push_back(at::zeros_like(value));
  }
  GradientProfile profile;
  for (const Batch& batch : batches) {
    const auto batch_tokens = static_cast<double>(batch.target_layout.tokens());
    // The logits serve both losses, so that one pass through the model is enough.
    const Tensor logits = model.logits(model.states(batch, context));
    {
      const at::NoGradGuard no_graph;
      profile.loss_label_smoothing += ops::cross_entropy(logits, batch.labels, {}, 0.1, 1 / tokens).loss.item<double>();
    }
    const ops::CrossEntropy result = ops::cross_entropy(logits, batch.labels, {}, label_smoothing, 1 / batch_tokens);
    profile.loss += result.nll / tokens;
    const std::vector<Tensor> gradient = gradients({result.loss}, values, {});
    const at::NoGradGuard no_graph;
    for (size_t i = 0; i < gradient.size(); ++i) {
      token_mean[i].add_(gradient[i], batch_tokens / tokens);
      batch_mean[i].add_(gradient[i], 1 / static_cast<double>(batches.size()));
    }
  }
  profile.norm_by_parameter = norms_of(parameters, token_mean);
  profile.batch_mean_norm_by_parameter = norms_of(parameters, batch_mean);
  for (const auto& [name, norm] : profile.norm_by_parameter) profile.total += norm * norm;
  profile.total = std::sqrt(profile.total);
  return profile;
}

}  // namespace plumb
