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
void drop_delayed(const PlannedRun& planned, std::vector<size_t>& found) {
  constexpr int kSteps = 3;
  const Parameters& parameters = planned.model.parameters();
  MovedParameters moved(parameters);
  const double length = 0.01 * parameters.flat().norm().item<double>();
  Tensor gradient = joined(planned.gradient);
  Tensor path = at::zeros_like(gradient);
  for (int step = 0; step < kSteps && !found.empty(); ++step) {
    path += gradient * (length / gradient.norm().item<double>());
    moved.along(path, 1);
    gradient = mean_loss(planned.model, {planned.batches.back()}, planned.config.label_smoothing, loss_of(planned.task))
                   .gradient;
    const std::vector<Tensor> pieces = parameters.split(gradient);
    std::erase_if(found, [&](size_t i) { return !is_zero(pieces[i]); });
  }
}

Finding without_gradient(const PlannedRun& planned, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = planned.model.parameters().all();
  std::vector<size_t> found;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!never_trained(settings[i], planned) && is_zero(planned.gradient[i])) found.push_back(i);
  }
  if (!found.empty()) drop_delayed(planned, found);
  Finding finding{.raised = !found.empty(), .value = static_cast<double>(found.size()), .threshold = 0};
  finding.text = fmt::format("{} of {} parameters have a gradient of exactly 0", found.size(), all.size());
  if (!found.empty()) {
    finding.where = all[found.front()].name;
    finding.text += fmt::format(", the first of them {}", finding.where);
  }
  finding.advice = "connect them to the loss: something between them and the loss passes no gradient";
  return finding;
}

/// Frozen random weights cannot become better; frozen pretrained ones may be meant so.
Finding frozen(const PlannedRun& planned, const std::vector<ParameterSettings>& settings) {
  const std::vector<Parameter>& all = planned.model.parameters().all();
  int64_t elements = 0;
  Finding finding{.threshold = 0};
  for (size_t i = 0; i < all.size(); ++i) {
    if (!never_trained(settings[i], planned)) continue;
    elements += all[i].value.numel();
    if (finding.where.empty()) finding.where = all[i].name;
  }
  finding.value = static_cast<double>(elements) / static_cast<double>(planned.model.parameters().count());
  finding.raised = elements > 0 && planned.random;
  finding.text = fmt::format("{} of {} parameters are frozen for the whole run{}", with_thousands(elements),
                             with_thousands(planned.model.parameters().count()),
                             finding.raised ? fmt::format(" at random values, such as {}", finding.where) : "");
  finding.advice = "leave out the group of [[train.groups]] that freezes them, or begin with trained weights";
  return finding;
}

/// Adam makes up for different gradients, but not for those that vanish in the rounding of float32 sums or below its ε.
Finding compare_layers(const PlannedRun& planned, StackKind stack) {
  const std::vector<Parameter>& all = planned.model.parameters().all();
  std::map<int64_t, double> squares;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<LayerId> id = LayerId::of_parameter(all[i].name);
    if (!id || !id->layer || id->stack != stack || all[i].value.dim() < 2) continue;
    squares[*id->layer] += planned.gradient[i].detach().to(at::kDouble).square().sum().item<double>();
  }
  Finding finding{.threshold = 1e4};
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [low, high] = std::minmax_element(squares.begin(), squares.end(), less);
  if (squares.size() < 2 || high->second == 0) return finding;  // all layers may begin behind a scalar of 0 (ReZero)
  finding.where = to_string(LayerId{stack, low->first});
  finding.value = low->second > 0 ? std::sqrt(high->second / low->second) : std::numeric_limits<double>::infinity();
  finding.raised = !(finding.value < finding.threshold);
  finding.text = fmt::format("the gradient's norm is {:.3g} in {} and {:.3g} in {}", std::sqrt(low->second),
                             finding.where, std::sqrt(high->second), to_string(LayerId{stack, high->first}));
  finding.advice =
      "a residual scheme through which gradients pass, such as model.residual = \"pre-ln\", or fewer layers";
  return finding;
}

std::vector<Finding> measure_gradients(const PlannedRun& planned) {
  const std::vector<ParameterSettings> settings = planned_settings(planned);
  std::vector<Finding> findings = {without_gradient(planned, settings), frozen(planned, settings)};
  for (const StackKind stack : {StackKind::encoder, StackKind::decoder}) {
    const Finding finding = compare_layers(planned, stack);
    if (!finding.text.empty()) findings.push_back(finding);
  }
  return findings;
}

[[maybe_unused]] const bool kGradientsAlarm = alarms().add(
    "gradients", "parameters without gradient or frozen, and the gradient's norm by layer", "", {measure_gradients});

}  // namespace
}  // namespace plumb::check
