#include "plumb/study/part.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/random.h"
#include "plumb/data/batches.h"
#include "plumb/nn/init/init.h"
#include "plumb/train/run.h"

namespace plumb {

ModelConfig model_for(const StudyContext& context, const std::string& scheme, int64_t layers) {
  ModelConfig model = context.config.model;
  model.residual = scheme;
  if (initializations().entries().count(scheme) != 0) model.initialization = scheme;
  model.encoder_layers = model.decoder_layers = layers;
  model.source_vocabulary = context.data.source_vocabulary();
  model.target_vocabulary = context.data.target_vocabulary();
  return model;
}

std::vector<Batch> measured_batches(const StudyContext& context, int64_t pairs, int64_t batch_tokens) {
  const ParallelSplit& split = context.data.split(context.config.data.measured_split);
  const int64_t count = std::min(pairs, split.size());
  std::vector<Batch> batches;
  for (std::vector<int64_t> examples : plan_evaluation_batches(costs_of(split), batch_tokens)) {
    std::erase_if(examples, [count](int64_t example) { return example >= count; });
    if (!examples.empty()) batches.push_back(make_batch(split, examples));
  }
  return batches;
}

Json trained_run(StudyContext& context, const std::string& name, const std::string& label, const RunConfig& config,
                 const Json& more_settings, const std::function<void(EncoderDecoder&, Json&)>& finish) {
  Json settings = {{"data", context.data_settings},
                   {"config", ConfigWriter().section("model", config.model).section("train", config.train).text()}};
  settings.update(more_settings);
  // A run of other settings is another run: both stand.
  const std::filesystem::path out =
      context.out / "runs" / fmt::format("{}-{:08x}", name, stream_of(settings.dump()) & 0xFFFFFFFFU);
  return context.measurements.get(name, settings, [&] {
    TrainHooks hooks;
    hooks.progress = label;
    if (context.on_point) hooks.point = [&](const TrainPoint& point) { context.on_point(out, point); };
    const TrainResult result = run_training(config, out, hooks);
    Json found = result.to_json();
    if (finish && result.outcome != "diverged") {
      EncoderDecoder model = load_model(out);
      finish(model, found);
    }
    return found;
  });
}

Json settings_of(const ModelConfig& model) { return ConfigWriter().section("model", model).text(); }

}  // namespace plumb
