// [watch] "updates": how far a step moves each layer. "layers": the size of gradients, weights and updates in each.
#include "plumb/analysis/watch/updates.h"

#include <cmath>
#include <span>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"
#include "plumb/run/watch.h"

namespace plumb {

void describe(Fields& field, UpdateMeasurement& measurement) {
  field("ratio", measurement.ratio);
  field("total", measurement.total);
}

void describe(Fields& field, StepNorms& norms) {
  field("gradient", norms.gradient);
  field("weight", norms.weight);
  field("update", norms.update);
}

void describe(Fields& field, LayerMeasurement& measurement) {
  field("gradient", measurement.gradient);
  field("weight", measurement.weight);
  field("update", measurement.update);
  field.section("total", measurement.total);
}

namespace {

/// ‖x‖ of each layer under its name ("encoder.layers.0") and of each parameter outside the layers, in the order of the
/// model; and of all parameters together.
struct NormsByLayer {
  NamedNumbers each;
  double total = 0;
};

/// pieces: one tensor per parameter, such as gradients; sums in float64.
NormsByLayer norms_by_layer(const Parameters& parameters, std::span<const Tensor> pieces) {
  const at::NoGradGuard no_graph;
  NormsByLayer norms;  // squares until the end
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& parameter = parameters.all()[i].name;
    const std::optional<LayerId> owner = LayerId::of_parameter(parameter);
    const std::string name = owner && owner->layer ? to_string(LayerId{owner->stack, owner->layer}) : parameter;
    if (find_value(norms.each, name) == nullptr) norms.each.emplace_back(name, 0.0);
    const double square = ops::sum_of_squares({pieces[i]});
    *find_value(norms.each, name) += square;
    norms.total += square;
  }
  for (auto& [name, norm] : norms.each) norm = std::sqrt(norm);
  norms.total = std::sqrt(norms.total);
  return norms;
}

/// What both measure of a step: ‖θ‖ before it, and ‖Δθ‖.
class StepWatch : public Watch {
 public:
  void before_step(const WatchedRun& run) override { before_ = run.model.parameters().flat().detach().clone(); }

  [[nodiscard]] Described measure(const WatchedRun& run) final {
    if (!before_.defined()) return {};  // before training
    const Parameters& parameters = run.model.parameters();
    const NormsByLayer weight = norms_by_layer(parameters, parameters.split(before_));
    const NormsByLayer update = norms_by_layer(parameters, parameters.split(parameters.flat().detach() - before_));
    before_ = Tensor();
    return described(weight, update);
  }

 private:
  [[nodiscard]] virtual Described described(const NormsByLayer& weight, const NormsByLayer& update) const = 0;

  Tensor before_;  // all parameters, only during a step that is measured
};

class UpdateWatch final : public StepWatch {
  [[nodiscard]] Described described(const NormsByLayer& weight, const NormsByLayer& update) const override {
    UpdateMeasurement found{update.each, update.total / weight.total};
    for (size_t i = 0; i < found.ratio.size(); ++i) found.ratio[i].second /= weight.each[i].second;
    return Described(std::move(found));
  }
};

class LayerWatch final : public StepWatch {
 public:
  void before_step(const WatchedRun& run) override {
    StepWatch::before_step(run);
    gradient_ = norms_by_layer(run.model.parameters(), run.gradient);
  }

 private:
  [[nodiscard]] Described described(const NormsByLayer& weight, const NormsByLayer& update) const override {
    return Described(
        LayerMeasurement{gradient_.each, weight.each, update.each, {gradient_.total, weight.total, update.total}});
  }

  NormsByLayer gradient_;
};

[[maybe_unused]] const bool kUpdatesRegistered =
    watches().add(UpdateMeasurement::kWatch,
                  "‖Δθ‖/‖θ‖ of the last step for each layer, for each parameter outside of layers, and in total", "",
                  watch_factory<UpdateWatch>());

[[maybe_unused]] const bool kLayersRegistered = watches().add(
    LayerMeasurement::kWatch,
    "‖g‖ of the last step before clipping, ‖θ‖ before it and ‖Δθ‖, for each layer, for each parameter outside of "
    "layers, and in total",
    "", watch_factory<LayerWatch>());

}  // namespace
}  // namespace plumb
