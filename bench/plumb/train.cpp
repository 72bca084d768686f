// plumb bench train: a training step.
#include <algorithm>

#include "bench.h"
#include "checks.h"
#include "plumb/data/batches.h"
#include "plumb/data/directory.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"
#include "plumb/task/task.h"

namespace plumb::app::bench {
namespace {

constexpr double kDropout = 0.1;
constexpr double kLabelSmoothing = 0.1;

struct TrainArguments {
  Sizes sizes{512, 1024, 4, 6, 10000, 64, 32};
  std::string data;  // use batches of this data directory; empty: random
  int64_t batch_tokens = 4096;
  std::string directory;  // to export to; empty: none
  bool profile = false;
};

/// Batches from across the training split, with its vocabulary sizes.
std::vector<Batch> real_batches(const TrainArguments& arguments, Sizes& sizes, uint64_t seed) {
  constexpr size_t kBatches = 8;
  const DataDirectory data = DataDirectory::open(arguments.data);
  sizes.vocabulary = std::max(data.source_vocabulary(), data.target_vocabulary());
  const std::unique_ptr<Dataset> examples = make_task({}, data, "encoder-decoder")->dataset("train");
  std::vector<Batch> batches;
  for (const auto& batch : plan_batches(examples->costs(), arguments.batch_tokens, seed, 0)) {
    if (batches.size() == kBatches) break;
    batches.push_back(examples->batch(batch));
  }
  return batches;
}

/// Exports the batches with their losses before the first step, without dropout.
void export_training(const TrainArguments& arguments, const Sizes& sizes, Model& model,
                     const std::vector<Batch>& batches, const LossOptions& options) {
  const at::NoGradGuard no_graph;
  Json work = {{"dropout", kDropout}, {"label_smoothing", kLabelSmoothing}, {"learning_rate", kLearningRate}};
  work["batches"] = Json::array();
  for (const Batch& batch : batches) {
    ForwardContext context;
    Json json = batch_json(batch);
    json["loss"] = model.loss(batch, options, context).value.item<double>();
    work["batches"].push_back(json);
  }
  export_work(arguments.directory, "train", sizes_json(sizes), work, &model);
}

Measured measure(const TrainArguments& arguments, uint64_t seed) {
  if (arguments.profile) require_profilable();
  Sizes sizes = arguments.sizes;
  std::vector<Batch> batches;
  if (arguments.data.empty()) {
    batches.push_back(random_batch(sizes, seed));
  } else {
    batches = real_batches(arguments, sizes, seed);
  }
  const std::unique_ptr<Model> model = random_model(sizes, seed);
  const auto optimizer = make_optimizer("adam", model->parameters());
  LossOptions options;
  options.label_smoothing = kLabelSmoothing;
  if (!arguments.directory.empty()) export_training(arguments, sizes, *model, batches, options);
  ops::MatrixPrecision precision(ops::precision_of(sizes.precision));
  const ops::PrecisionGuard guard(precision);
  int64_t step = 0;
  const auto steps = [&] {
    for (const Batch& batch : batches) {
      ForwardContext context(kDropout, seed, ++step);
      const Loss loss = model->loss(batch, options, context);
      optimizer->step(gradients({loss.value}, model->parameters().values(), {}), kLearningRate, 1.0);
    }
  };
  const double seconds = device_seconds(sizes.runs, model->parameters().device(), steps);
  Measured result = result_document("train", sizes_json(sizes));
  result.document["batches"] = batches.size();
  add_step_figures(result.document, *model, batches, seconds);
  if (arguments.profile) result.profile = profile_of(sizes.runs, steps);
  return result;
}

void add_train(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* verb = add_measurement(bench, globals, "train", "Time a training step: forward, backward, Adam",
                                   [arguments, &globals] { return measure(*arguments, globals.seed); });
  verb->add_option("--data", arguments->data,
                   "Use batches from this data directory's training split, of --batch-tokens each")
      ->type_name("DIR");
  verb->add_option("--batch-tokens", arguments->batch_tokens, "Tokens per batch with --data")->check(positive());
  add_precision_option(*verb, arguments->sizes.precision);
  add_export_option(*verb, arguments->directory);
  add_profile_option(*verb, arguments->profile);
  add_sizes(*verb, arguments->sizes);
}

const bool kTrainRegistered = register_verb({Heading::benchmarks, 10, add_train});

}  // namespace
}  // namespace plumb::app::bench
