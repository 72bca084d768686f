// The size of activations: what sub-layers read and return, and what a stack returns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/analysis/signal.h"
#include "plumb/check/thresholds.h"
#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

/// An activation and the root of its mean square.
struct Size {
  ActivationPoint point;
  double rms = 0;
};

/// Sub-layers of one kind in one stack have the same shape and initialization, so their outputs differ by a factor of
/// 2 to 3, even where the stream grows with depth. A tenfold one is a layer of its own. The size relative to the larger
/// of the neighbors, of the sub-layer where it is largest.
Finding compare_outputs(const std::vector<Size>& outputs) {
  Finding finding{.threshold = 10};
  for (size_t i = 0; outputs.size() > 1 && i < outputs.size(); ++i) {
    const double before = i > 0 ? outputs[i - 1].rms : 0;
    const double after = i + 1 < outputs.size() ? outputs[i + 1].rms : 0;
    const double ratio = outputs[i].rms / std::max(before, after);
    if (!(ratio > finding.value)) continue;
    finding.value = ratio;
    finding.where = to_string(outputs[i].point.id);
  }
  finding.raised = finding.value >= finding.threshold;
  finding.text = fmt::format("the output of {} is {:.3g} times as large as that of its neighbors in other layers",
                             finding.where, finding.value);
  finding.advice = "a smaller initialization of this sub-layer's matrices";
  return finding;
}

/// Norms make what is read 1; a hundred means that nothing normalizes a stream that grows with every layer.
Finding largest_read(const std::vector<Size>& inputs) {
  const auto largest =
      std::max_element(inputs.begin(), inputs.end(), [](const Size& a, const Size& b) { return a.rms < b.rms; });
  Finding finding{.where = to_string(largest->point.id), .value = largest->rms, .threshold = 100};
  finding.raised = !(finding.value < finding.threshold);
  finding.text =
      fmt::format("{} reads activations of RMS {:.3g}, the largest of all sub-layers", finding.where, largest->rms);
  finding.advice =
      "a residual scheme or a norm that keeps the stream from growing (model.residual, model.norm), or a "
      "smaller initialization";
  return finding;
}

/// A final norm makes what the output layer reads 1; shallow stacks without any norm return 1 to 3.5, and unit vectors
/// (nGPT) 1/√d. Outside of these bounds, logits are too large, or the same whatever is read.
Finding measure_states(const PlannedRun& planned) {
  const at::NoGradGuard no_graph;
  ForwardContext context(Pass::measurement);
  const Tensor states = planned.model.states(planned.batches.back(), context);
  Finding finding{.where = "states", .value = std::sqrt(states.to(at::kDouble).square().mean().item<double>())};
  const bool low = finding.value < kSmallestStates;
  finding.threshold = low ? kSmallestStates : kLargestStates;
  finding.raised = low || !(finding.value < kLargestStates);
  finding.text =
      fmt::format("the output layer reads activations of RMS {:.3g}; a norm at the end makes it 1", finding.value);
  finding.advice = "a norm at the end of the stack";
  return finding;
}

std::vector<Finding> measure_sizes(const PlannedRun& planned) {
  if (kind_of(planned.model.config()).recurrent) return {};
  const double width = static_cast<double>(planned.model.config().d_model);
  std::map<std::pair<StackKind, SubLayerKind>, std::vector<Size>> outputs;
  std::vector<Size> inputs;
  for (const LayerPoint& each : measure_signal(planned.model, planned.batches).points) {
    const LayerId& id = each.point.id;
    if (!id.sub_layer) continue;
    const Size size{each.point, std::sqrt(each.mean_square / width)};
    if (each.point.point == Point::output) outputs[{id.stack, *id.sub_layer}].push_back(size);
    if (each.point.point == Point::input) inputs.push_back(size);
  }
  std::vector<Finding> findings;
  for (const auto& [kind, sizes] : outputs) {
    if (sizes.size() > 1) findings.push_back(compare_outputs(sizes));
  }
  if (!inputs.empty()) findings.push_back(largest_read(inputs));
  findings.push_back(measure_states(planned));
  return findings;
}

[[maybe_unused]] const bool kSignalAlarm =
    alarms().add("signal", "the size of what sub-layers read and return, and of what stacks return",
                 "Xiong et al. 2020, arXiv 2002.04745", {measure_sizes});

}  // namespace
}  // namespace plumb::check
