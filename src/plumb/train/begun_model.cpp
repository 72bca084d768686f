#include "plumb/train/begun_model.h"

#include "plumb/model/kind.h"
#include "plumb/ops/device.h"

namespace plumb {

std::unique_ptr<Model> make_begun_model(const RunConfig& config) {
  const TrainConfig& train = config.train;
  const bool divided = train.tensor_parallel > 1 || train.pipeline_parallel > 1 || train.shard == "parameters";
  const bool in_shards = train.processes > 1 && divided && config.initial_weights.empty() &&
                         !kind_of(config.model).recurrent && ops::default_device().is_cpu();
  {
    const WithoutMemory none(in_shards);
    std::unique_ptr<Model> model = make_model(config.model);
    if (!in_shards || model->initializes_separately()) return model;
  }
  return make_model(config.model);
}

}  // namespace plumb
