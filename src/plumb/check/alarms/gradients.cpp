// Parameters that do not learn: without gradient, or frozen for the whole run; and gradients that differ by layer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/moved_parameters.h"
#include "plumb/base/text.h"
#include "plumb/check/planned_step.h"

namespace plumb::check {
namespace {

bool is_zero(const Tensor& gradient) { return gradient.count_nonzero().item<int64_t>() == 0; }

/// Takes from `found` what is not cut off: a matrix behind one that begins at 0 (a trained scalar, an adapter) has no
/// gradient until steps have moved that one, and an encoder behind such a decoder needs one more. The steps are a
/// hundredth of the weights' norm, and are taken back.
void drop_delayed(const Evidence& evidence, std::vector<size_t>& found) {
  constexpr int kSteps = 3;
  const Parameters& parameters = evidence.model.parameters();
  MovedParameters moved(parameters);
  const double length = 0.01 * parameters.flat().norm().item<double>();
  Tensor gradient = joined(evidence.gradient);
  Tensor path = at::zeros_like(gradient);
  for (int step = 0; step < kSteps && !found.empty(); ++step) {
    path += gradient * (length / gradient.norm().item<double>());
    moved.along(path, 1);
    gradient =
        mean_loss(evidence.model, {evidence.batches.back()}, evidence.config.label_smoothing, loss_of(evidence.task))
            .gradient;
    const std::vector<Tensor> pieces = parameters.split(gradient);
    std::erase_if(found, [&](size_t i) { return !is_zero(pieces[i]); });
  }
}

Reason without_gradient(const Evidence& evidence, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  std::vector<size_t> found;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!never_trained(settings[i], evidence) && is_zero(evidence.gradient[i])) found.push_back(i);
  }
  if (!found.empty()) drop_delayed(evidence, found);
  Reason reason{.raised = !found.empty(), .value = static_cast<double>(found.size()), .threshold = 0};
  reason.text = fmt::format("{} of {} parameters have a gradient of exactly 0", found.size(), all.size());
  if (!found.empty()) {
    reason.place = all[found.front()].name;
    reason.text += fmt::format(", the first of them {}", reason.place);
  }
  reason.advice = "connect them to the loss: something between them and the loss passes no gradient";
  return reason;
}

/// Frozen random weights cannot become better; frozen pretrained ones may be meant so.
Reason frozen(const Evidence& evidence, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  int64_t elements = 0;
  Reason reason{.threshold = 0};
  for (size_t i = 0; i < all.size(); ++i) {
    if (!never_trained(settings[i], evidence)) continue;
    elements += all[i].value.numel();
    if (reason.place.empty()) reason.place = all[i].name;
  }
  reason.value = static_cast<double>(elements) / static_cast<double>(evidence.model.parameters().count());
  reason.raised = elements > 0 && evidence.random;
  reason.text = fmt::format("{} of {} parameters are frozen for the whole run{}", with_thousands(elements),
                            with_thousands(evidence.model.parameters().count()),
                            reason.raised ? fmt::format(" at random values, such as {}", reason.place) : "");
  reason.advice = "leave out the group of [[train.groups]] that freezes them, or begin with trained weights";
  return reason;
}

/// Adam makes up for different gradients, but not for those that vanish in the rounding of float32 sums or below its ε.
Reason compare_layers(const Evidence& evidence, StackKind stack) {
  const std::vector<Parameter>& all = evidence.model.parameters().all();
  std::map<int64_t, double> squares;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(all[i].name);
    if (!id || !id->layer || id->stack != stack || all[i].value.dim() < 2) continue;
    squares[*id->layer] += evidence.gradient[i].detach().to(at::kDouble).square().sum().item<double>();
  }
  Reason reason{.threshold = 1e4};
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [low, high] = std::minmax_element(squares.begin(), squares.end(), less);
  if (squares.size() < 2 || high->second == 0) return reason;  // all layers may begin behind a scalar of 0 (ReZero)
  reason.place = to_string(LayerId{stack, low->first});
  reason.value = low->second > 0 ? std::sqrt(high->second / low->second) : std::numeric_limits<double>::infinity();
  reason.raised = !(reason.value < reason.threshold);
  reason.text = fmt::format("the gradient's norm is {:.3g} in {} and {:.3g} in {}", std::sqrt(low->second),
                            reason.place, std::sqrt(high->second), to_string(LayerId{stack, high->first}));
  reason.advice =
      "a residual scheme through which gradients pass, such as model.residual = \"pre-ln\", or fewer layers";
  return reason;
}

std::vector<Reason> look_at_gradients(const Evidence& evidence) {
  const std::vector<ParameterSettings> settings = planned_settings(evidence);
  std::vector<Reason> reasons = {without_gradient(evidence, settings), frozen(evidence, settings)};
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    const Reason reason = compare_layers(evidence, stack);
    if (!reason.text.empty()) reasons.push_back(reason);
  }
  return reasons;
}

[[maybe_unused]] const bool kGradientsLookedAt = alarms().add(
    "gradients", "parameters without gradient or frozen, and the gradient's norm by layer", "", {look_at_gradients});

}  // namespace
}  // namespace plumb::check
