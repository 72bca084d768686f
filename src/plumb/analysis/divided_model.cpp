#include "plumb/analysis/divided_model.h"

#include <utility>

#include "plumb/base/contains.h"
#include "plumb/nn/init/init.h"
#include "plumb/ops/device.h"

namespace plumb {

DividedModel make_divided_model(const ModelConfig& config, at::ScalarType type, const Group& layers,
                                const std::optional<GivenWeights>& weights, uint64_t seed) {
  if (layers.size() > 1 && ops::default_device().is_cpu()) {
    const auto without_memory = [&] {
      const WithoutMemory none;
      return make_model(config, type);
    };
    std::unique_ptr<Model> model = without_memory();
    if (weights || model->initializes_separately()) {
      LayerDivision division = model->divide(layers);
      model->allocate();
      const Parameters& shards = model->parameters();
      if (weights) {
        NamedTensors own = weights->tensors;
        for (size_t i = 0; i < shards.all().size(); ++i) {
          if (Tensor* value = find_value(own, shards.all()[i].name)) *value = division.shard(i, *value);
        }
        load_parameters(shards, own, weights->origin);
      } else {
        initialize_shards(
            shards, model->initializer(seed), [&](size_t i) { return division.full_sizes(i); },
            [&](size_t i, const Tensor& full) { return division.shard(i, full); });
      }
      return {std::move(model), std::move(division)};
    }
  }
  std::unique_ptr<Model> model = make_model(config, type);
  if (weights) {
    load_parameters(model->parameters(), weights->tensors, weights->origin);
  } else {
    model->initialize(seed);
  }
  LayerDivision division = model->divide(layers);
  return {std::move(model), std::move(division)};
}

}  // namespace plumb
