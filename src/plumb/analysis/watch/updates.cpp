// [watch] "updates": how far a step moves each layer.
#include "plumb/analysis/watch/updates.h"

#include "plumb/analysis/norms_by_layer.h"
#include "plumb/run/watch.h"

namespace plumb {

void describe(Fields& field, UpdateMeasurement& measurement) {
  field("ratio", measurement.ratio);
  field("total", measurement.total);
}

namespace {

class UpdateWatch final : public Watch {
 public:
  void before_step(const WatchedRun& run) override { before_ = run.model.parameters().flat().detach().clone(); }

  [[nodiscard]] Described measure(const WatchedRun& run) override {
    if (!before_.defined()) return {};  // before training
    const Parameters& parameters = run.model.parameters();
    const NormsByLayer weight = norms_by_layer(parameters, parameters.split(before_));
    const NormsByLayer update = norms_by_layer(parameters, parameters.split(parameters.flat().detach() - before_));
    before_ = Tensor();
    UpdateMeasurement found{update.each, update.total / weight.total};
    for (size_t i = 0; i < found.ratio.size(); ++i) found.ratio[i].second /= weight.each[i].second;
    return Described(std::move(found));
  }

 private:
  Tensor before_;  // all parameters, only during a step that is measured
};

[[maybe_unused]] const bool kUpdatesRegistered = watches().add(
    UpdateMeasurement::kWatch, "‖Δθ‖/‖θ‖ of the last step for each layer, for each parameter outside of layers, and in total", "",
    watch_factory<UpdateWatch>());

}  // namespace
}  // namespace plumb
