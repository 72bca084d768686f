#include "plumb/train/finetune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/data/directory.h"
#include "plumb/nn/layer_id.h"
#include "plumb/task/direction.h"
#include "plumb/train/initial_weights.h"
#include "plumb/train/run.h"
#include "plumb/train/seal.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

void check_finetuning(const FinetuneConfig& config) {
  if (config.unfreeze != "all" && config.unfreeze != "gradual" && config.unfreeze != "last")
    throw Error(fmt::format("finetune.unfreeze = \"{}\" is unknown", config.unfreeze), "known: all, gradual, last");
  if (!(config.rate_divisor >= 1) || !std::isfinite(config.rate_divisor))
    throw Error(fmt::format("finetune.rate_divisor = {} must be at least 1", config.rate_divisor));
}

int64_t layers_of(const Parameters& parameters) {
  int64_t layers = 0;
  for (const Parameter& parameter : parameters.all()) {
    if (const auto id = LayerId::of_parameter(parameter.name)) layers = std::max(layers, id->number());
  }
  return layers;
}

bool is_of_embedding(const std::string& name) { return name.starts_with("src_") || name.starts_with("tgt_"); }

/// The parameters of a group by number from the top, as patterns.
std::map<int64_t, std::vector<std::string>> patterns_of(const Parameters& parameters) {
  const int64_t layers = layers_of(parameters);
  std::map<int64_t, std::vector<std::string>> groups;
  for (const Parameter& parameter : parameters.all()) {
    const std::string& name = parameter.name;
    if (is_of_head(name)) continue;
    const auto id = LayerId::of_parameter(name);
    const bool in_layer = id && id->layer;
    const int64_t number = is_of_embedding(name) ? layers + 1 : in_layer ? layers - *id->layer : 1;
    const std::string pattern = in_layer ? to_string(LayerId{id->stack, id->layer}) + ".*" : name;
    std::vector<std::string>& patterns = groups[number];
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
  }
  return groups;
}

/// The model as it was pretrained, with another head.
ModelConfig body_of(const ModelConfig& pretrained) {
  if (pretrained.kind != "encoder" && pretrained.kind != "decoder") {
    throw Error(fmt::format("a model of kind \"{}\" cannot be fine-tuned to classify", pretrained.kind),
                "give a run of an encoder or a decoder");
  }
  ModelConfig model = pretrained;
  model.pooling = model.kind == "encoder" ? "first" : "last";
  model.pooler = model.output_transform = false;
  model.labels = 0;
  return model;
}

/// Throws Error unless the tokenizer of the data is one that the run was trained with, as far as the run recorded it.
void require_vocabulary_of(const fs::path& run, const RunConfig& pretrained, const fs::path& data) {
  if (!fs::exists(run / "data.json")) return;
  const Json stored = read_sealed(run / "data.json");
  const Json own = to_json(mark_of(data / "tokenizer.model"));
  const Json tokenizers = stored.value("tokenizer", Json::object());
  for (const auto& [file, mark] : tokenizers.items()) {
    if (mark == own) return;
  }
  throw Error(fmt::format("{}: its vocabulary is not the one that {} was trained with", data.string(), run.string()),
              fmt::format("prepare it with `plumb data labels --tokenizer-from {}`", pretrained.data));
}

}  // namespace

void describe(Fields& field, FinetuneConfig& config) {
  field("from", config.from);
  field("unfreeze", config.unfreeze);
  field("rate_divisor", config.rate_divisor);
}

std::vector<ParameterGroup> finetuning_groups(const FinetuneConfig& config, const Parameters& parameters) {
  check_finetuning(config);
  std::vector<ParameterGroup> groups;
  if (config.unfreeze == "all" && config.rate_divisor == 1) return groups;
  for (const auto& [number, patterns] : patterns_of(parameters)) {
    ParameterGroup group{.pattern = patterns};
    group.learning_rate_factor = std::pow(config.rate_divisor, -static_cast<double>(number));
    if (config.unfreeze == "gradual") group.frozen_until = Duration::parse(fmt::format("{}e", number));
    if (config.unfreeze == "last") group.frozen_until = -1;
    groups.push_back(std::move(group));
  }
  return groups;
}

TrainConfig finetuning_defaults(const FinetuneConfig& config, int64_t layers) {
  TrainConfig train;
  train.optimizer = "adamw";
  train.learning_rate = 5e-5;
  train.schedule = "constant * slanted_triangular";
  train.steps = Duration::parse(fmt::format("{}e", config.unfreeze == "gradual" ? layers + 3 : 3));
  train.weight_decay = 0.01;
  train.clip_norm = 1;
  train.label_smoothing = 0;
  train.validate_every = Duration::parse("1e");
  train.checkpoint_every = Duration::parse("1e");
  train.best_metric = "accuracy";
  return train;
}

RunConfig finetuning_run(const Config& document, const std::string& from, const std::string& data) {
  FinetuneConfig finetune;
  document.read("finetune", finetune);
  if (!from.empty()) finetune.from = from;
  check_finetuning(finetune);
  if (finetune.from.empty()) throw UsageError("no model to start from", "give --from RUN, or set finetune.from");
  const RunAndCheckpoint place = locate_run(finetune.from);
  const RunConfig pretrained = load_run_config(place.run);
  if (reads_backward(pretrained.task))
    throw Error(fmt::format("{}: a backward language model cannot be fine-tuned to classify", place.run.string()),
                "classifiers read forward: give a run with task.language-modeling.direction = \"forward\"");
  RunConfig run;
  run.model = body_of(pretrained.model);
  const ModelDepth depth = depth_of(run.model);
  run.train = finetuning_defaults(finetune, std::max(depth.encoder_layers, depth.decoder_layers));
  run = read_run_config(document, std::move(run), {"finetune"});
  if (!data.empty()) run.data = data;
  if (run.data.empty()) throw UsageError("no data to train on", "give --data DIR, or set data.directory");
  const DataDirectory labeled = DataDirectory::open(run.data);
  if (labeled.labels().empty()) {
    throw Error(fmt::format("{}: has no labels", labeled.path().string()),
                fmt::format("create a data directory with `plumb data labels --tokenizer-from {}`", pretrained.data));
  }
  require_vocabulary_of(place.run, pretrained, labeled.path());
  if (run.task.name.empty()) run.task.name = "classification";
  if (run.task.name != "classification")
    throw Error(fmt::format("task.name = \"{}\": a model is fine-tuned to classify", run.task.name),
                "for another task, train it with `plumb train --set initial.weights=RUN`");
  run.initial_weights = place.checkpoint.string();
  ModelConfig complete = run.model;
  make_task(run.task, labeled, complete.kind)->complete(complete);
  const std::vector<ParameterGroup> groups = finetuning_groups(finetune, make_model(complete)->parameters());
  run.train.groups.insert(run.train.groups.end(), groups.begin(), groups.end());
  return run;
}

}  // namespace plumb
