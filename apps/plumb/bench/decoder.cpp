// plumb bench decoder: a training step of a language model with GPT-2's architecture, 42 million parameters by default.
#include "bench.h"
#include "plumb/base/timing.h"
#include "plumb/ops/device.h"
#include "plumb/ops/precision.h"
#include "plumb/optim/optimizer.h"

namespace plumb::app::bench {
namespace {

constexpr double kLearningRate = 1e-4;

struct DecoderArguments {
  DecoderSizes model{512, 2048, 8, 8, 32000};
  int64_t texts = 4, length = 1024, runs = 3;
  std::string precision = "float32";
  std::string directory;  // to export to, if any
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

/// Random texts; each token is to be predicted from those before it.
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

/// Multiplications and additions in the matrix products of a forward pass; attention's are halved, since it is causal.
double forward_flops(const DecoderArguments& arguments) {
  const DecoderSizes& s = arguments.model;
  const auto d = static_cast<double>(s.d_model), length = static_cast<double>(arguments.length);
  const auto per_layer = 8 * d * d + 4 * d * static_cast<double>(s.feed_forward) + 2 * d * length;
  return static_cast<double>(arguments.texts) * length *
         (static_cast<double>(s.layers) * per_layer + 2 * d * static_cast<double>(s.vocabulary));
}

Json measure(const DecoderArguments& arguments, uint64_t seed) {
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
  const double seconds = median_seconds(arguments.runs, [&] {
    ForwardContext context;
    const Loss loss = model->loss(batch, {}, context);
    optimizer->step(gradients({loss.value}, model->parameters().values(), {}), kLearningRate, 1.0);
    ops::synchronize(model->parameters().device());
  });
  Json json = result_document("decoder", sizes_of(arguments));
  const double gflops = 3e-9 * forward_flops(arguments) / seconds, ceiling = ceiling_gflops();
  json["parameters"] = model->parameters().count();
  json["seconds_per_step"] = seconds;
  json["target_tokens_per_second"] = static_cast<double>(arguments.texts * arguments.length) / seconds;
  json["gflops"] = gflops;
  json["ceiling_gflops"] = ceiling;
  json["ceiling_fraction"] = gflops / ceiling;
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json;
}

}  // namespace

void add_decoder(CLI::App& bench, Globals& globals) {
  const auto arguments = std::make_shared<DecoderArguments>();
  CLI::App* verb =
      add_measurement(bench, globals, "decoder", "Time a training step of a language model: forward, backward, Adam",
                      [arguments, &globals] { return measure(*arguments, globals.seed); });
  add_sizes(*verb, arguments->model);
  add_size(*verb, "--texts", arguments->texts, "Texts in a batch");
  add_size(*verb, "--length", arguments->length, "Tokens per text");
  add_size(*verb, "--runs", arguments->runs, "Timed steps; the median is reported");
  verb->add_option("--precision", arguments->precision, "Precision of matrix products")
      ->check(CLI::IsMember({"float32", "bf16"}))
      ->capture_default_str();
  add_export_option(*verb, arguments->directory);
}

}  // namespace plumb::app::bench
