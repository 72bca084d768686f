// [watch] "layers": the size of gradients, weights and updates in each layer.
#include "plumb/analysis/norms_by_layer.h"
#include "plumb/analysis/watch/updates.h"
#include "plumb/run/watch.h"

namespace plumb {

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

class LayerWatch final : public Watch {
 public:
  void before_step(const WatchedRun& run) override {
    before_ = run.model.parameters().flat().detach().clone();
    gradient_ = norms_by_layer(run.model.parameters(), run.gradient);
  }

  [[nodiscard]] Described measure(const WatchedRun& run) override {
    if (!before_.defined()) return {};  // before training
    const Parameters& parameters = run.model.parameters();
    const NormsByLayer weight = norms_by_layer(parameters, parameters.split(before_));
    const NormsByLayer update = norms_by_layer(parameters, parameters.split(parameters.flat().detach() - before_));
    before_ = Tensor();
    return Described(
        LayerMeasurement{gradient_.each, weight.each, update.each, {gradient_.total, weight.total, update.total}});
  }

 private:
  Tensor before_;  // all parameters, only during a step that is measured
  NormsByLayer gradient_;
};

[[maybe_unused]] const bool kLayersRegistered = watches().add(
    LayerMeasurement::kWatch,
    "‖g‖ of the last step before clipping, ‖θ‖ before it and ‖Δθ‖, for each layer, for each parameter outside of "
    "layers, and in total",
    "", watch_factory<LayerWatch>());

}  // namespace
}  // namespace plumb
