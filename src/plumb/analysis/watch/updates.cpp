// [watch] "updates": how far a step moves each layer.
#include "plumb/analysis/update_ratio.h"
#include "plumb/run/watch.h"

namespace plumb {
namespace {

class UpdateWatch final : public Watch {
 public:
  void before_step(const WatchedRun& run) override { before_ = run.model.parameters().flat().detach().clone(); }

  [[nodiscard]] Json measure(const WatchedRun& run) override {
    if (!before_.defined()) return nullptr;  // before training
    Json json = Json::object();
    for (const UpdateRatio& each :
         update_ratios(run.model.parameters(), before_, run.model.parameters().flat().detach())) {
      (each.name == "total" ? json["total"] : json["ratio"][each.name]) = each.ratio();
    }
    before_ = Tensor();
    return json;
  }

 private:
  Tensor before_;  // all parameters, only during a step that is measured
};

[[maybe_unused]] const bool kUpdatesRegistered = watches().add(
    "updates", "‖Δθ‖/‖θ‖ of the last step for each layer, for each parameter outside of layers, and in total", "",
    [](const Options&) { return std::make_unique<UpdateWatch>(); });

}  // namespace
}  // namespace plumb
