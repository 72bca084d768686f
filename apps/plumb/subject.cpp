#include "subject.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "checks.h"
#include "manual.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/toml_text.h"
#include "plumb/data/directory.h"
#include "plumb/data/sequences.h"
#include "plumb/interop/import.h"
#include "plumb/run/directory.h"
#include "plumb/task/task.h"
#include "trained_model.h"

namespace plumb::app {
namespace {

/// Throws Error if a model of this configuration cannot read the batch; sets the number of classes from the labels if
/// the configuration leaves it open, and moves what a decoder classifies to the side that it reads.
void fit_to_batch(ModelConfig& config, Batch& batch) {
  const bool encodes = config.kind == "encoder";
  const bool classifies = encodes || (is_language_model(config.kind) && config.labels > 0);
  const bool labeled = batch.target_input.empty();
  if (classifies != labeled || (config.kind == "encoder-decoder" && batch.source.empty())) {
    throw Error(fmt::format("a model of kind \"{}\"{} cannot read this batch", config.kind,
                            classifies && !encodes ? " with labels" : ""),
                "an encoder-decoder reads {\"source\", \"target\"}, a decoder or awd-lstm {\"tokens\"}, or with "
                "model.labels {\"tokens\", \"labels\"}, an encoder {\"tokens\", \"labels\"}");
  }
  const bool predicts_tokens = encodes && config.pooling == "none";
  if (predicts_tokens && batch.places.empty()) {
    throw Error("an encoder with model.pooling = \"none\" has no class for a sequence",
                "give a label for each token to predict, null for the others: {\"tokens\": [[5, 4, 7]], \"labels\": "
                "[[null, 6, null]]}");
  }
  if (classifies && !predicts_tokens && !batch.places.empty())
    throw Error("this model classifies sequences, but the batch has labels of tokens",
                "give a label for each sequence");
  if (classifies && !encodes) move_to_target(batch);
  if (!classifies || predicts_tokens || config.labels > 0) return;
  for (const int64_t label : batch.labels) config.labels = std::max(config.labels, label + 1);
  config.labels = std::max<int64_t>(config.labels, 2);
}

/// Replaces labels of the data by the model's outputs of the same names, where those are known.
void label_by_name(std::vector<Batch>& batches, const std::vector<std::string>& of_model, const DataDirectory& data) {
  if (of_model.empty()) return;
  const std::vector<int64_t> outputs = outputs_of_labels(of_model, data.labels(), data.path().string());
  for (Batch& batch : batches) {
    for (int64_t& label : batch.labels) label = outputs[static_cast<size_t>(label)];
  }
}

template <typename T>
uint32_t checksum_of(const std::vector<T>& values, uint32_t start) {
  return crc32_of(std::as_bytes(std::span(values)), start);
}

}  // namespace

void add_subject_options(CLI::App& verb, SubjectOptions& options) {
  verb.add_option("RUN", options.run,
                  "A run directory: its model, data and latest checkpoint; or a folder of a Hugging Face model")
      ->type_name("RUN");
  verb.add_option("--config", options.config, "TOML file with a [model] section, instead of a run")->type_name("FILE");
  verb.add_option("--set", options.set, "Override a key, such as model.residual=pre-ln; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb.add_option("--weights", options.weights, "Weights as safetensors (default: initialize the model)")
      ->type_name("FILE");
  verb.add_flag("--at-initialization", options.at_initialization, "Measure the run's model as it was before training");
  verb.add_option(
          "--batch", options.batch,
          "JSON file with token ids: {\"source\": [[…]], \"target\": [[…]]}, {\"tokens\": [[…]]} or {\"tokens\": "
          "[[…]], \"labels\": […]}; for a masked language model, a label for each token: [[…, null]]")
      ->type_name("FILE");
  verb.add_option("--data", options.data, "Data directory made by `plumb data`")->type_name("DIR");
  suggest(verb.add_option("--split", options.split, "Split of the data")->capture_default_str(),
          {"train", "valid", "test"});
  verb.add_option("--pairs", options.pairs, "Use only the first N examples; 0: all")
      ->capture_default_str()
      ->check(not_negative());
  verb.add_option("--batch-tokens", options.batch_tokens, "Tokens per micro-batch")
      ->capture_default_str()
      ->check(positive());
  verb.add_option("--dtype", options.dtype, "Type of parameters and computation")
      ->check(CLI::IsMember({"float32", "float64"}))
      ->capture_default_str();
}

Subject open_subject(const SubjectOptions& options) {
  if (options.run.empty() && options.config.empty() && options.set.empty()) {
    throw UsageError("no model given",
                     "give a run directory, --config FILE.toml, or the keys that differ from their defaults with --set; "
                     "--help has an example");
  }
  if (!options.run.empty() && !options.config.empty()) {
    throw UsageError(fmt::format("two models given: the run {} and --config {}", options.run, options.config),
                     "give only one of them");
  }
  std::string data = options.data;
  std::string weights = options.weights;
  const bool at_rest = weights.empty() && !options.at_initialization;  // whether to use the run's weights
  const bool is_run = !options.run.empty() && !is_model_folder(options.run);
  std::optional<ImportedModel> imported;
  if (!options.run.empty() && !is_run) imported = read_model_folder(options.run);
  if (is_run) {
    require_directory(options.run, "run");
    if (data.empty() && options.batch.empty()) data = load_run_config(options.run).data;
    if (at_rest) weights = (latest_checkpoint(options.run) / "model.safetensors").string();
  }
  Config config = imported                 ? Config::from_string(to_toml(run_config_of(*imported)), options.run)
                  : is_run                 ? Config::from_file(std::filesystem::path(options.run) / "config.toml")
                  : options.config.empty() ? Config::from_string("[model]\n", "--set")
                                           : Config::from_file(options.config);
  for (const std::string& assignment : options.set) config.set(assignment);

  config.allow_only({"model", "train", "task", "watch", "data", "initial"});
  Subject subject;
  TrainConfig training;  // read only to detect misspelled keys, as is [watch]
  config.read("train", training);
  WatchConfig watch;
  config.read("watch", watch);
  TaskConfig task_config;
  config.read("task", task_config);
  if (!config.read("model", subject.config)) throw Error(fmt::format("{}: has no [model] section", config.name()));
  subject.type = options.dtype == "float64" ? at::kDouble : at::kFloat;
  if (!options.batch.empty() && !data.empty())
    throw UsageError("both --data and --batch given", "give only one of them");
  if (options.batch.empty() && data.empty()) {
    throw UsageError("no data given: either --data DIR or --batch FILE.json is required",
                     "create a data directory with `plumb data`");
  }
  if (!data.empty()) {
    const std::unique_ptr<Task> task = make_task(task_config, DataDirectory::open(data), subject.config.kind);
    task->complete(subject.config);
    subject.batches = evaluation_batches(*task->dataset(options.split), options.batch_tokens, options.pairs);
    if (!options.run.empty() && task->name() == "classification")
      label_by_name(subject.batches, labels_of(options.run), task->data());
  } else {
    subject.batches.push_back(take_json(options.batch, [](const Json& document) {
      return batch_from_json(document.contains("batch") ? document["batch"] : document);
    }));
    fit_to_batch(subject.config, subject.batches.front());
  }
  if (!weights.empty()) {
    subject.weights = load_safetensors(weights);
    subject.weights_origin = weights;
  } else if (imported && at_rest) {
    subject.weights = std::move(imported->tensors);
    subject.weights_origin = options.run;
  }
  validate(subject.config);
  return subject;
}

Facts facts_of(const Subject& subject) {
  Facts facts;
  RunConfig config;
  config.model = subject.config;
  for (const auto& [key, value] : key_values(to_toml(config))) {
    if (key.starts_with("model.")) facts.emplace_back(key, value);
  }
  uint32_t examples = 0;
  for (const Batch& batch : subject.batches) {
    for (const std::vector<int64_t>* ids :
         {&batch.source, &batch.segments, &batch.target_input, &batch.labels, &batch.places,
          &batch.source_layout.offsets(), &batch.target_layout.offsets()}) {
      examples = checksum_of(*ids, examples);
    }
    examples = checksum_of(batch.weights, examples);
  }
  facts.emplace_back("the number of micro-batches", std::to_string(subject.batches.size()));
  facts.emplace_back("the checksum of the examples", crc32_text(examples));
  if (!subject.weights) return facts;
  uint32_t weights = 0;
  for (const auto& [name, values] : *subject.weights) {
    const Tensor bytes = values.contiguous().view({-1}).view(at::kByte);
    weights = crc32_of(name, weights);
    weights =
        crc32_of(std::as_bytes(std::span(bytes.data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel()))), weights);
  }
  facts.emplace_back("the checksum of the weights", crc32_text(weights));
  return facts;
}

std::unique_ptr<Model> Subject::make_model(uint64_t seed) const {
  auto model = plumb::make_model(config, type);
  if (weights) {
    load_parameters(model->parameters(), *weights, weights_origin);
  } else {
    model->initialize(seed);
  }
  return model;
}

int64_t Subject::examples() const {
  int64_t count = 0;
  for (const Batch& batch : batches) count += std::ssize(batch.examples);
  return count;
}

int64_t Subject::target_tokens() const {
  int64_t count = 0;
  for (const Batch& batch : batches) count += std::ssize(batch.labels);
  return count;
}

Json Subject::document(const Json& measured) const {
  const ModelDepth depth = depth_of(config);
  Json model;
  model["residual"] = config.residual;
  model["norm"] = config.norm;
  model["initialization"] = weights ? "" : config.initialization;
  model["weights"] = weights_origin;
  model["kind"] = config.kind;
  model["layers"] = {depth.encoder_layers, depth.decoder_layers};
  model["d_model"] = width_of(config);
  model["feed_forward"] = config.feed_forward;
  model["heads"] = config.heads;
  model["vocabulary"] = {config.source_vocabulary, config.target_vocabulary};
  model["pairs"] = examples();
  model["target_tokens"] = target_tokens();
  model["micro_batches"] = batches.size();
  model["dtype"] = type == at::kDouble ? "float64" : "float32";
  Json document;
  document["schema"] = measured["schema"];
  document["command"] = measured["command"];
  document["model"] = model;
  document.update(measured);
  return document;
}

}  // namespace plumb::app
