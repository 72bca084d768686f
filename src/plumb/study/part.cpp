#include "plumb/study/part.h"

#include <algorithm>

#include "plumb/data/batches.h"

namespace plumb {

ModelConfig model_for(const StudyContext& context, const std::string& scheme, int64_t layers) {
  ModelConfig model = context.config.model;
  model.residual = scheme;
  model.encoder_layers = model.decoder_layers = layers;
  model.source_vocabulary = context.data.source_vocabulary();
  model.target_vocabulary = context.data.target_vocabulary();
  return model;
}

std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens) {
  const ParallelSplit& split = context.data.split(context.config.data.measured_split);
  const int64_t count = std::min(pairs, split.size());
  std::vector<Batch> batches;
  for (std::vector<int64_t> examples : plan_evaluation_batches(split, batch_tokens)) {
    std::erase_if(examples, [count](int64_t example) { return example >= count; });
    if (!examples.empty()) batches.push_back(make_batch(split, examples));
  }
  return batches;
}

Json settings_of(const ModelConfig& model) { return ConfigWriter().section("model", model).text(); }

}  // namespace plumb
