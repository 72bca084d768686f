#include "plumb/train/begun_model.h"

#include "plumb/model/kind.h"
#include "plumb/ops/device.h"

namespace plumb {

std::unique_ptr<Model> make_begun_model(const RunConfig& config) {
  const bool in_pieces = config.train.shard == "parameters" && config.train.processes > 1 &&
                         config.train.tensor_parallel == 1 && config.train.pipeline_parallel == 1 &&
                         config.initial_weights.empty() && !kind_of(config.model).recurrent &&
                         ops::default_device().is_cpu();
  {
    const WithoutMemory none(in_pieces);
    std::unique_ptr<Model> model = make_model(config.model);
    if (!in_pieces || !model->needs_profile()) return model;
  }
  return make_model(config.model);
}

}  // namespace plumb
