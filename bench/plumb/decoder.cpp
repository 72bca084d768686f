// plumb bench decoder: a training step of a language model with GPT-2's architecture, 42 million parameters by default.
#include "bench.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"

namespace plumb::app::bench {
namespace {

struct DecoderArguments {
  DecoderSizes model{512, 2048, 8, 8, 32000};
  int64_t texts = 4, length = 1024, runs = 3;
  std::string precision = "float32";
  std::string directory;  // to export to, if any
  bool profile = false;
};

Json sizes_of(const DecoderArguments& a) {
  Json json = sizes_json(a.model);
  json.update({{"texts", a.texts},
               {"length", a.length},
               {"positions", a.length},
               {"precision", a.precision},
               {"runs", a.runs}});
  return json;
}

/// Random texts; each token is to be predicted from the preceding ones.
Batch random_texts(const DecoderArguments& arguments, uint64_t seed) {
  Random random(seed, "bench");
  Batch batch;
  for (int64_t i = 0; i < arguments.texts; ++i) {
    const std::vector<int32_t> ids = random_ids(random, arguments.length + 1, arguments.model.vocabulary);
    batch.target_input.insert(batch.target_input.end(), ids.begin(), ids.end() - 1);
    batch.labels.insert(batch.labels.end(), ids.begin() + 1, ids.end());
    batch.target_layout.append(arguments.length);
  }
  return batch;
}

Measured measure(const DecoderArguments& arguments, uint64_t seed) {
  if (arguments.profile) require_profilable();
  const std::unique_ptr<Model> model = make_model(decoder_config(arguments.model, arguments.length));
  model->initialize(seed);
  const Batch batch = random_texts(arguments, seed);
  if (!arguments.directory.empty()) {
    const at::NoGradGuard no_graph;
    ForwardContext context;
    Json json = batch_json(batch);
    json["loss"] = model->loss(batch, {}, context).value.item<double>();
    export_work(arguments.directory, "decoder", sizes_of(arguments),
                {{"label_smoothing", 0.0}, {"learning_rate", kLearningRate}, {"batches", Json::array({json})}},
                model.get());
  }
  const auto optimizer = make_optimizer("adam", model->parameters());
  ops::MatrixPrecision precision(ops::precision_of(arguments.precision));
  const ops::PrecisionGuard guard(precision);
  const auto step = [&] {
    ForwardContext context;
    const Loss loss = model->loss(batch, {}, context);
    optimizer->step(gradients({loss.value}, model->parameters().values(), {}), kLearningRate, 1.0);
  };
  const double seconds = device_seconds(arguments.runs, model->parameters().device(), step);
  Measured result = result_document("decoder", sizes_of(arguments));
  add_step_figures(result.document, *model, {batch}, seconds);
  if (arguments.profile) result.profile = profile_of(arguments.runs, step);
  return result;
}

void add_decoder(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<DecoderArguments>();
  CLI::App* verb =
      add_measurement(bench, globals, "decoder", "Time a training step of a language model: forward, backward, Adam",
                      [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_sizes(*verb, arguments->model);
  add_size(*verb, "--texts", arguments->texts, "Texts in a batch");
  add_size(*verb, "--length", arguments->length, "Tokens per text");
  add_size(*verb, "--runs", arguments->runs, "Timed steps; the median is reported");
  add_precision_option(*verb, arguments->precision);
  add_export_option(*verb, arguments->directory);
  add_profile_option(*verb, arguments->profile);
}

const bool kDecoderRegistered = register_verb({Heading::benchmarks, 20, add_decoder});

}  // namespace
}  // namespace plumb::app::bench
