// What surrounds the passes of a training step: updates of the parameters, and batches.
#include <cstdlib>
#include <memory>
#include <string>

#include "plumb/data/batch_plan.h"
#include "plumb/data/directory.h"
#include "plumb/model/model.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"
#include "plumb/plan/model_cost.h"
#include "plumb/task/task.h"
#include "timing.h"

namespace plumb::bench {
namespace {

/// A decoder with 42 million parameters, like GPT-2 but smaller.
ModelConfig decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.positions = "learned";
  config.max_positions = 1024;
  config.activation = "gelu-tanh";
  config.embedding_factor = 1;
  config.d_model = 512;
  config.feed_forward = 2048;
  config.heads = 8;
  config.decoder_layers = 8;
  config.target_vocabulary = 32000;
  return config;
}

/// An update of the decoder's parameters, with random gradients.
void update(benchmark::State& state, const std::string& optimizer_name, const std::string& precision_name) {
  const std::unique_ptr<Model> model = make_model(decoder());
  model->initialize(1);
  const Parameters& parameters = model->parameters();
  const std::vector<Tensor> gradient = parameters.split(at::randn({parameters.count()}).mul_(1e-2));
  const std::vector<ParameterStep> settings(parameters.all().size(),
                                            ParameterStep{.learning_rate = 1e-3, .weight_decay = 0.1});
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(optimizer_name, parameters);
  ops::MatrixPrecision precision(ops::precision_of(precision_name));
  const ops::PrecisionGuard guard(precision);
  // NT-ASGD averages once validations become worse, and RAdam divides by √v from the sixth step on.
  for (int i = 0; i < 10; ++i) optimizer->see_validation(i);
  for (int i = 0; i < 6; ++i) optimizer->step(gradient, settings);
  repeat(state, [&] { optimizer->step(gradient, settings); });
  const auto count = static_cast<double>(parameters.count());
  const double bytes = plan::optimizer_bytes(model->config(), optimizer_name, {});
  state.counters["state bytes per parameter"] = bytes / count;
  // Parameters and state are read and written, gradients are read.
  state.counters["bytes/s"] =
      benchmark::Counter(3 * count * sizeof(float) + 2 * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

/// The batches of 4,096 tokens of an epoch, from opening the data.
void epoch_of_batches(benchmark::State& state, const std::string& directory) {
  int64_t tokens = 0;
  repeat(state, [&] {
    const DataDirectory data = DataDirectory::open(directory);
    const TaskConfig config;
    const auto examples = make_task(config, data, usual_model_kind(config, data))->dataset("train");
    const ExampleCosts costs(examples->size(), [&](int64_t i) { return examples->cost(i); });
    const BatchPlan plan(costs, {.tokens = 4096, .seed = 1}, 0);
    tokens = 0;
    for (int64_t window = 0; window < plan.windows(); ++window) {
      for (const std::vector<int64_t>& each : *plan.window(window)) {
        const Batch batch = examples->drawn(each, {.seed = 1, .epoch = 0});
        tokens += static_cast<int64_t>(batch.source.size() + batch.target_input.size());
      }
    }
  });
  state.counters["tokens"] = static_cast<double>(tokens);
}

}  // namespace

void add_updates() {
  const auto add_update = [](const std::string& name, const std::string& optimizer, const std::string& precision) {
    benchmark::RegisterBenchmark(("update/" + name).c_str(), update, optimizer, precision)
        ->Iterations(10)  // SOAP updates its rotations in one of ten steps
        ->Unit(benchmark::kMillisecond);
  };
  for (const std::string& name : optimizers().names()) add_update(name, name, "float32");
  add_update("muon-bf16", "muon", "bf16");
  if (const char* data = std::getenv("PLUMB_DATA")) {
    benchmark::RegisterBenchmark("epoch_of_batches", epoch_of_batches, std::string(data))
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace plumb::bench
