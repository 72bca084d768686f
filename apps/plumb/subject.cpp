#include "subject.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "checks.h"
#include "declared_manual.h"
#include "plumb/base/crc32.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/toml_text.h"
#include "plumb/data/directory.h"
#include "plumb/data/sequences.h"
#include "plumb/interop/import.h"
#include "plumb/interop/opened_model.h"
#include "plumb/model/kind.h"
#include "plumb/run/directory.h"
#include "plumb/task/task.h"
#include "training.h"

namespace plumb::app {
namespace {

/// Throws Error if a model of this configuration cannot read the batch; sets the number of classes from the labels if
/// the configuration leaves it open, and moves what a decoder classifies to the side that it reads.
void fit_to_batch(ModelConfig& config, Batch& batch) {
  const ModelKind& kind = kind_of(config);
  const bool encodes = kind.only_encodes();
  const bool classifies = encodes || (kind.models_language() && config.labels > 0);
  const bool labeled = batch.target_input.empty();
  if (classifies != labeled || (kind.translates() && batch.source.empty())) {
    throw Error(fmt::format("a model of kind \"{}\"{} cannot read this batch", config.kind,
                            classifies && !encodes ? " with labels" : ""),
                "an encoder-decoder reads {\"source\", \"target\"}, a decoder or awd-lstm {\"tokens\"}, or with "
                "model.labels {\"tokens\", \"labels\"}, an encoder {\"tokens\", \"labels\"}");
  }
  const bool predicts_tokens = encodes && config.pooling == "none";
  if (predicts_tokens && batch.predicted_positions.empty()) {
    throw Error("an encoder with model.pooling = \"none\" has no class for a sequence",
                "give a label for each token to predict, null for the others: {\"tokens\": [[5, 4, 7]], \"labels\": "
                "[[null, 6, null]]}");
  }
  if (classifies && !predicts_tokens && !batch.predicted_positions.empty())
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

void add_subject_options(CLI::App& verb, SubjectArguments& arguments) {
  verb.add_option("RUN", arguments.run,
                  "A run directory: its model, data and latest checkpoint; or a folder of a Hugging Face model")
      ->type_name("RUN");
  verb.add_option("--config", arguments.config, "TOML file with a [model] section, instead of a run")
      ->type_name("FILE");
  add_set_option(verb, arguments.set);
  verb.add_option("--weights", arguments.weights, "Weights as safetensors (default: initialize the model)")
      ->type_name("FILE");
  verb.add_flag("--at-initialization", arguments.at_initialization,
                "Measure the run's model as it was before training");
  verb.add_option(
          "--batch", arguments.batch,
          "JSON file with token ids: {\"source\": [[…]], \"target\": [[…]]}, {\"tokens\": [[…]]} or {\"tokens\": "
          "[[…]], \"labels\": […]}; for a masked language model, a label for each token: [[…, null]]")
      ->type_name("FILE");
  verb.add_option("--data", arguments.data, "Data directory made by `plumb data`")->type_name("DIR");
  suggest(verb.add_option("--split", arguments.split, "Split of the data"), {"train", "valid", "test"});
  verb.add_option("--pairs", arguments.pairs, "Use only the first N examples; 0: all")->check(not_negative());
  verb.add_option("--batch-tokens", arguments.batch_tokens, "Tokens per micro-batch")->check(positive());
  verb.add_option("--dtype", arguments.dtype, "Type of parameters and computation")
      ->check(CLI::IsMember({"float32", "float64"}));
}

Subject open_subject(const SubjectArguments& arguments) {
  if (arguments.run.empty() && arguments.config.empty() && arguments.set.empty()) {
    throw UsageError(
        "no model given",
        "give a run directory, --config FILE.toml, or the keys that differ from their defaults with --set; "
        "--help has an example");
  }
  if (!arguments.run.empty() && !arguments.config.empty()) {
    throw UsageError(fmt::format("two models given: the run {} and --config {}", arguments.run, arguments.config),
                     "give only one of them");
  }
  RunAndCheckpoint place{arguments.run, {}};
  const bool at_rest = arguments.weights.empty() && !arguments.at_initialization;  // whether to use the run's weights
  RunConfig run;
  if (!arguments.run.empty()) {
    if (!std::filesystem::exists(place.run / "config.toml")) {
      place = locate_run(arguments.run);
    } else if (at_rest) {  // other runs need not have a checkpoint
      place.checkpoint = latest_checkpoint(place.run);
    }
    run = load_run_config(place.run);
  }
  const std::string data = arguments.data.empty() && arguments.batch.empty() ? run.data : arguments.data;
  Config changes = arguments.config.empty() ? Config::from_string("", "--set") : Config::from_file(arguments.config);
  for (const std::string& assignment : arguments.set) changes.set(assignment);
  run = read_run_config(changes, std::move(run));
  Subject subject;
  subject.config = std::move(run.model);
  subject.type = arguments.dtype == "float64" ? at::kDouble : at::kFloat;
  if (!arguments.batch.empty() && !data.empty())
    throw UsageError("both --data and --batch given", "give only one of them");
  if (arguments.batch.empty() && data.empty()) {
    throw UsageError("no data given: either --data DIR or --batch FILE.json is required",
                     "create a data directory with `plumb data`");
  }
  if (!data.empty()) {
    const std::unique_ptr<Task> task = make_task(run.task, DataDirectory::open(data), subject.config.kind);
    task->complete(subject.config);
    subject.batches = evaluation_batches(*task->dataset(arguments.split), arguments.batch_tokens, arguments.pairs);
    if (!arguments.run.empty() && task->name() == "classification")
      label_by_name(subject.batches, labels_of(place.run), task->data());
  } else {
    subject.batches.push_back(take_json(arguments.batch, [](const Json& document) {
      return batch_from_json(document.contains("batch") ? document["batch"] : document);
    }));
    fit_to_batch(subject.config, subject.batches.front());
  }
  if (!arguments.weights.empty()) {
    subject.weights = load_safetensors(arguments.weights);
    subject.weights_origin = arguments.weights;
  } else if (!arguments.run.empty() && at_rest) {
    subject.weights = weights_in(place.checkpoint);
    subject.weights_origin =
        is_model_folder(place.run) ? arguments.run : (place.checkpoint / "model.safetensors").string();
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
         {&batch.source, &batch.segments, &batch.target_input, &batch.labels, &batch.predicted_positions,
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

DividedModel Subject::make_model(uint64_t seed, const Group& layers) const {
  std::optional<GivenWeights> given;
  if (weights) given.emplace(GivenWeights{*weights, weights_origin});
  return make_divided_model(config, type, layers, given, seed);
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
