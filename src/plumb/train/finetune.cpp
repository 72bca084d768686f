#include "plumb/train/finetune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/data/directory.h"
#include "plumb/model/kind.h"
#include "plumb/nn/layer_id.h"
#include "plumb/optim/adam.h"
#include "plumb/run/data_fingerprint.h"
#include "plumb/run/directory.h"
#include "plumb/run/initial_weights.h"
#include "plumb/task/direction.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

void check_finetuning(const FinetuneConfig& config) {
  require_valid("finetune", config);
  if (config.lora.rank > 0 && (config.unfreeze != "all" || config.rate_divisor != 1))
    throw Error("finetune.lora trains the adapters of all layers alike",
                "leave finetune.unfreeze and finetune.rate_divisor out");
}

int64_t layers_of(const Parameters& parameters) {
  int64_t layers = 0;
  for (const Parameter& parameter : parameters.all()) {
    if (const auto id = LayerId::of_parameter(parameter.name)) layers = std::max(layers, id->number());
  }
  return layers;
}

bool is_of_embedding(const std::string& name) {
  return name.starts_with("src_") || name.starts_with("tgt_") || name.starts_with("embedding.");
}

/// A pattern that matches all parameters of the layer that this parameter belongs to.
std::string pattern_of_layer(const std::string& name, const LayerId& id) {
  if (name.starts_with("lstm.")) return fmt::format("lstm.{}.*", *id.layer);
  return to_string(LayerId{id.stack, id.layer}) + ".*";
}

/// Patterns of the parameters of each group, by group number (finetuning_groups).
std::map<int64_t, std::vector<std::string>> patterns_of(const Parameters& parameters) {
  const int64_t layers = layers_of(parameters);
  const bool shared = parameters.find("output.weight") == nullptr;  // the output layer uses the embedding matrix
  std::map<int64_t, std::vector<std::string>> groups;
  for (const Parameter& parameter : parameters.all()) {
    const std::string& name = parameter.name;
    const auto id = LayerId::of_parameter(name);
    const bool in_layer = id && id->layer;
    int64_t number = in_layer ? layers - *id->layer : 1;
    if (is_of_embedding(name)) number = shared ? 0 : layers + 1;
    if (is_of_head(name)) number = 0;
    const std::string pattern = in_layer ? pattern_of_layer(name, *id) : name;
    std::vector<std::string>& patterns = groups[number];
    if (!contains(patterns, pattern)) patterns.push_back(pattern);
  }
  return groups;
}

Duration epochs(int64_t count) { return Duration::parse(fmt::format("{}e", count)); }

/// Sets when group `number` is trained. `last`: the highest group number.
void freeze(ParameterGroup& group, const std::string& unfreeze, int64_t number, int64_t last) {
  if (unfreeze == "gradual") group.frozen_until = epochs(number);
  if (unfreeze == "last" && number > 0) group.frozen_until = -1;
  if (unfreeze != "chain-thaw") return;
  const int64_t all = last + 1;  // the first epoch in which everything is trained
  const int64_t alone = number == 0 ? 0 : all - number;
  group.frozen_until = epochs(alone);
  if (alone + 1 == all) return;
  group.frozen_again_from = epochs(alone + 1);
  group.frozen_again_until = epochs(all);
}

/// One group for adapters and head, with default settings, and one for everything else, frozen.
std::vector<ParameterGroup> adapter_groups(const Parameters& parameters) {
  ParameterGroup trained{.pattern = {"*_lora.?"}};
  for (const Parameter& parameter : parameters.all()) {
    if (is_of_head(parameter.name)) trained.pattern.push_back(parameter.name);
  }
  return {trained, ParameterGroup{.pattern = {"*"}, .frozen_until = -1}};
}

/// The pretrained model with a new head.
ModelConfig body_of(const ModelConfig& pretrained) {
  ModelConfig model = pretrained;
  model.pooling = kind_of(model).pooling;
  model.pooler = model.output_transform = false;
  model.labels = 0;
  return model;
}

/// Sets the model and task of a run that learns to classify. A classifier of the same labels keeps its head.
void learn_labels(RunConfig& run, const RunConfig& pretrained, bool same_labels) {
  run.model = same_labels ? pretrained.model : body_of(pretrained.model);
  run.task.name = "classification";
  if (reads_backward(pretrained.task)) classify_backward(run.task);
}

/// Sets the model and task of a run that continues pretraining on other text.
void learn_text(RunConfig& run, const RunConfig& pretrained, const fs::path& from, const DataDirectory& text) {
  run.model = pretrained.model;
  run.task = pretrained.task;
  if (run.model.labels > 0)
    throw Error(fmt::format("{}: is a classifier, which learns nothing from text without labels", from.string()),
                "give a language model, or data made by `plumb data labels`");
  if (!has_vocabulary_of(from, text)) run.model.source_vocabulary = run.model.target_vocabulary = 0;
}

/// The argument of `plumb data labels --tokenizer-from`: the pretrained run's data, or the imported model itself.
std::string tokenizer_place(const RunConfig& pretrained, const fs::path& from) {
  return pretrained.data.empty() ? from.string() : pretrained.data;
}

/// Throws Error if the requested run does not fit the pretrained one.
void check_finetuned(const RunConfig& run, const RunConfig& pretrained, const fs::path& from, const DataDirectory& data,
                     bool labeled) {
  if (reads_backward(run.task) != reads_backward(pretrained.task))
    throw Error(fmt::format("{}: was pretrained to read in the other direction", from.string()),
                fmt::format("leave out task.{}.direction", run.task.name));
  if (!labeled) return;
  if (run.task.name != "classification")
    throw Error(fmt::format("task.name = \"{}\": a model is fine-tuned to classify", run.task.name),
                "for another task, train it with `plumb train --set initial.weights=RUN`");
  if (has_vocabulary_of(from, data)) return;
  throw Error(
      fmt::format("{}: its vocabulary is not the one that {} was trained with", data.path().string(), from.string()),
      fmt::format("prepare it with `plumb data labels --tokenizer-from {}`", tokenizer_place(pretrained, from)));
}

}  // namespace

void describe(Fields& field, FinetuneConfig& config) {
  field("from", config.from, "the pretrained run or a checkpoint in one; `--from` overrides it");
  field("unfreeze", config.unfreeze,
        "`all`: every layer is trained from the start; `gradual`: the head first, and one more layer each epoch, from "
        "the last to the embeddings; `chain-thaw`: one epoch for the head alone, one for each layer alone, from the "
        "embeddings to the last, then all; `last`: the head alone",
        one_of({"all", "gradual", "chain-thaw", "last"}));
  field("rate_divisor", config.rate_divisor,
        "the learning rate of each layer is that of the layer above it divided by this: 2.6 in ULMFiT; a layer-wise "
        "decay of 0.9 is 1.111",
        at_least(1));
  field.section(
      "lora", [&config](Fields& inner) { describe(inner, config.lora); }, config.lora.rank > 0);
}

std::vector<ParameterGroup> finetuning_groups(const FinetuneConfig& config, const Parameters& parameters) {
  check_finetuning(config);
  if (config.lora.rank > 0) return adapter_groups(parameters);
  std::vector<ParameterGroup> groups;
  if (config.unfreeze == "all" && config.rate_divisor == 1) return groups;
  const auto numbered = patterns_of(parameters);
  for (const auto& [number, patterns] : numbered) {
    ParameterGroup group{.pattern = patterns};
    group.learning_rate_factor = std::pow(config.rate_divisor, -static_cast<double>(number));
    freeze(group, config.unfreeze, number, numbered.rbegin()->first);
    if (number > 0 || config.unfreeze == "chain-thaw") groups.push_back(std::move(group));
  }
  return groups;
}

TrainConfig finetuning_defaults(const FinetuneConfig& config, const ModelConfig& model, bool labeled) {
  const ModelDepth depth = depth_of(model);
  const int64_t layers = std::max(depth.encoder_layers, depth.decoder_layers);
  // The embeddings are a separate group unless they are also the output layer.
  const int64_t last = labeled || model.share_embeddings == "none" ? layers + 1 : layers;
  TrainConfig train;
  train.optimizer = "adamw";
  train.learning_rate = config.lora.rank > 0 ? 4e-4 : 5e-5;
  train.schedule = "constant * slanted_triangular";
  train.steps = epochs(config.unfreeze == "gradual" ? last + 2 : config.unfreeze == "chain-thaw" ? last + 3 : 3);
  train.weight_decay = 0.01;
  train.clip_norm = 1;
  train.label_smoothing = 0;
  train.validate_every = epochs(1);
  train.checkpoint_every = epochs(1);
  if (labeled) train.best_metric = "accuracy";
  if (kind_of(model).recurrent) {
    train.optimizer = "adam";
    train.options.insert_or_assign("adam", Options(AdamOptions{.beta1 = 0.7, .beta2 = 0.99}));
    train.learning_rate = labeled ? 0.01 : 0.004;
    train.weight_decay = 0;
    train.clip_norm = 0.25;
  }
  return train;
}

RunConfig finetuning_run(const Config& document, const std::string& from, const std::string& data, bool weights) {
  FinetuneConfig finetune;
  document.read("finetune", finetune);
  if (!from.empty()) finetune.from = from;
  check_finetuning(finetune);
  if (finetune.from.empty()) throw UsageError("no model to start from", "give --from RUN, or set finetune.from");
  const RunAndCheckpoint place = weights ? locate_run(finetune.from) : RunAndCheckpoint{finetune.from, {}};
  const RunConfig pretrained = load_run_config(place.run);
  RunConfig run;
  run.data = data.empty() ? read_run_config(document, {}, {"finetune"}).data : data;
  if (run.data.empty()) throw UsageError("no data to train on", "give --data DIR, or set data.directory");
  if (kind_of(pretrained.model).translates()) {
    throw Error(fmt::format("a model of kind \"{}\" cannot be fine-tuned", pretrained.model.kind),
                "give a run of an encoder, a decoder or an awd-lstm");
  }
  const DataDirectory directory = DataDirectory::open(run.data);
  const bool labeled = !directory.labels().empty();
  if (!labeled && directory.task() != "language-modeling") {
    throw Error(fmt::format("{}: has no labels", directory.path().string()),
                fmt::format("create a data directory with `plumb data labels --tokenizer-from {}`",
                            tokenizer_place(pretrained, place.run)));
  }
  if (labeled) {
    learn_labels(run, pretrained, has_labels_of(place.run, directory));
  } else {
    learn_text(run, pretrained, place.run, directory);
    if (finetune.lora.rank > 0 && !has_vocabulary_of(place.run, directory))
      throw Error(fmt::format("{}: has a different vocabulary from {}, and adapters leave the embeddings as they are",
                              directory.path().string(), place.run.string()),
                  "prepare the text with the model's tokenizer, or leave out finetune.lora");
  }
  run.model.lora = finetune.lora;
  run.train = finetuning_defaults(finetune, run.model, labeled);
  run = read_run_config(document, std::move(run), {"finetune"});
  if (!data.empty()) run.data = data;
  check_finetuned(run, pretrained, place.run, directory, labeled);
  if (weights) run.initial_weights = place.checkpoint.string();
  ModelConfig complete = run.model;
  make_task(run.task, directory, complete.kind)->complete(complete);
  const std::vector<ParameterGroup> groups = finetuning_groups(finetune, make_model(complete)->parameters());
  run.train.groups.insert(run.train.groups.end(), groups.begin(), groups.end());
  return run;
}

}  // namespace plumb
