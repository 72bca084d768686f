// [watch] "layers": the size of gradients, weights and updates in each layer.
#include "plumb/analysis/update_ratio.h"
#include "plumb/run/watch.h"

namespace plumb {
namespace {

class LayerWatch final : public Watch {
 public:
  void before_step(const WatchedRun& run) override {
    before_ = run.model.parameters().flat().detach().clone();
    gradient_ = norms_by_layer(run.model.parameters(), run.gradient);
  }

  [[nodiscard]] Json measure(const WatchedRun& run) override {
    if (!before_.defined()) return nullptr;  // before training
    Json json = Json::object();
    const auto put = [&](const char* what, const std::string& layer, double norm) {
      (layer == "total" ? json["total"][what] : json[what][layer]) = norm;
    };
    for (const auto& [layer, norm] : gradient_) put("gradient", layer, norm);
    for (const UpdateRatio& each :
         update_ratios(run.model.parameters(), before_, run.model.parameters().flat().detach())) {
      put("weight", each.name, each.weight);
      put("update", each.name, each.update);
    }
    before_ = Tensor();
    return json;
  }

 private:
  Tensor before_;  // all parameters, only during a step that is measured
  std::vector<std::pair<std::string, double>> gradient_;
};

[[maybe_unused]] const bool kLayersRegistered =
    watches().add("layers",
                  "‖g‖ of the last step before clipping, ‖θ‖ before it and ‖Δθ‖, for each layer, for each parameter "
                  "outside of layers, "
                  "and in total",
                  "", [](const Options&) { return std::make_unique<LayerWatch>(); });

}  // namespace
}  // namespace plumb
