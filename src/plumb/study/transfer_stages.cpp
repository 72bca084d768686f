#include "plumb/study/transfer_stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/model/kind.h"
#include "plumb/run/directory.h"
#include "plumb/study/changed_keys.h"
#include "plumb/train/finetune.h"

namespace plumb {
namespace fs = std::filesystem;
namespace {

// Values of MeasurementRequest::stage.
constexpr int64_t kPretrainingStage = 0, kTextStage = 1, kLabelStage = 2;

/// The keys of [train] that a stage sets; the others have the defaults of `plumb finetune`.
struct StageTraining {
  double learning_rate = 0;
  std::string schedule;
  Duration steps, validate_every, checkpoint_every;
  int64_t keep_checkpoints = 1;
  int64_t batch_tokens = 0;
  int64_t seed = 1;
};

void describe(Fields& field, StageTraining& training) {
  field("learning_rate", training.learning_rate);
  field("schedule", training.schedule);
  field("steps", training.steps);
  field("validate_every", training.validate_every);
  field("checkpoint_every", training.checkpoint_every);
  field("keep_checkpoints", training.keep_checkpoints);
  field("batch_tokens", training.batch_tokens);
  field("seed", training.seed);
}

/// A number of epochs. The model is validated only at the end, so no epoch is selected by validation.
StageTraining stage_training(const TransferStudy& part, int64_t epochs, int64_t seed) {
  StageTraining training;
  training.steps = training.validate_every = training.checkpoint_every = Duration::parse(fmt::format("{}e", epochs));
  training.batch_tokens = part.batch_tokens;
  training.seed = seed;
  return training;
}

/// A run that starts from another run's weights or configuration.
struct FollowingRun {
  std::string name, label;
  StageRun from;
  StageData data;
  FinetuneConfig finetune;
  StageTraining training;
  bool weights = true;  // false: only the configuration comes from the run before it
  int64_t stage = kTextStage;
  double work = 1;
};

/// Null if an earlier stage diverged.
std::optional<TrainResult> stage_result(const Json& json) {
  return json.is_object() ? std::optional(TrainResult::from_json(json)) : std::nullopt;
}

StageRun following_run(StudyContext& context, const FollowingRun& run) {
  StageRun stage;
  MeasurementRequest& measurement = stage.measurement;
  measurement.name = run.name;
  measurement.label = run.label;
  measurement.settings = {{"from", run.from.directory.filename().string()},
                          {"data", run.data.settings},
                          {"finetune", changed_keys(run.finetune)},
                          {"train", changed_keys(run.training)},
                          {"weights", run.weights}};
  measurement.stage = run.stage;
  measurement.work = run.work;
  stage.directory = run_directory(context, run.name, measurement.settings);
  measurement.measure = [&context, run, out = stage.directory] {
    const std::optional<TrainResult> before = stage_result(context.measurements.get(run.from.measurement));
    // If it did not end with weights, its configuration exists at least.
    if (run.weights && (!before || before->outcome == RunOutcome::diverged)) return Json();
    const std::string document = ConfigWriter().section("finetune", run.finetune).section("train", run.training).text();
    const RunConfig config = finetuning_run(Config::from_string(document, run.name), run.from.directory.string(),
                                            run.data.directory.string(), run.weights);
    return trained(context, run.label, config, out);
  };
  return stage;
}

int64_t number_of_layers(const ModelConfig& model) {
  const ModelDepth depth = depth_of(model);
  return std::max(depth.encoder_layers, depth.decoder_layers);
}

}  // namespace

const std::vector<TransferRecipe>& transfer_recipes() {
  static const std::vector<TransferRecipe> recipes = {
      {.name = "scratch",
       .description = "from scratch",
       .weights = false,
       .text = false,
       .unfreeze = "all",
       .discriminative = false},
      {.name = "complete", .description = "complete recipe"},
      {.name = "no-text", .description = "without the task's text", .text = false},
      {.name = "no-discriminative", .description = "without discriminative rates", .discriminative = false},
      {.name = "no-unfreezing", .description = "without gradual unfreezing", .unfreeze = "all"},
      {.name = "no-slanted", .description = "with a constant rate", .slanted = false},
      {.name = "last-layer", .description = "last layer only", .unfreeze = "last"},
      {.name = "all-at-once", .description = "all at once", .unfreeze = "all", .discriminative = false},
      {.name = "chain-thaw", .description = "chain-thaw", .unfreeze = "chain-thaw"},
  };
  return recipes;
}

int64_t TransferRecipe::least_epochs(int64_t layers) const {
  // The head, the layers and the embeddings, one per epoch; a chain-thaw ends with an epoch for all.
  if (unfreeze == "gradual") return layers + 2;
  return unfreeze == "chain-thaw" ? layers + 3 : 1;
}

const TransferRecipe& transfer_recipe(const std::string& name) {
  if (const TransferRecipe* found = find_by(transfer_recipes(), &TransferRecipe::name, name)) return *found;
  throw Error(fmt::format("transfer.arms: there is no arm '{}'", name));
}

std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms) {
  if (!model_kind(kind).recurrent && contains(arms, "all-at-once")) return "all-at-once";
  return contains(arms, "complete") ? "complete" : "";
}

PlannedStage planned_stage(PartPlan& plan, const StageRun& stage) {
  return plan.add<std::optional<TrainResult>>(stage.measurement, stage_result);
}

TransferStages::TransferStages(StudyContext& context, const TransferStudy& part)
    : context_(context), part_(part), data_(context, part) {
  for (const TransferModel& model : part_.models) (void)make_model(pretrained_model(model));
}

ModelConfig TransferStages::pretrained_model(const TransferModel& model) const {
  ModelConfig config = context_.config.model;
  config.kind = model.kind;
  config.labels = 0;
  if (model_kind(model.kind).only_encodes()) config.pooling = "none";
  if (!model.initialization.empty()) config.initialization = model.initialization;
  make_task(context_.config.task, context_.data, config.kind)->complete(config);
  return config;
}

StageRun TransferStages::pretraining(const TransferModel& model) const {
  RunRequest request;
  request.name = fmt::format("transfer-{}-pretrained", model.kind);
  request.label = fmt::format("{}, pretraining", model.kind);
  request.config = run_config(context_, pretrained_model(model), context_.config.train);
  if (model.pretraining_rate > 0) request.config.train.learning_rate = model.pretraining_rate;
  StageRun stage{run_measurement(context_, request), {}};
  stage.measurement.stage = kPretrainingStage;
  stage.directory = run_directory(context_, request.name, stage.measurement.settings);
  return stage;
}

StageRun TransferStages::on_text(const TransferModel& model) const {
  if (part_.text_epochs == 0) return pretraining(model);
  FollowingRun run;
  run.finetune.rate_divisor = part_.rate_divisor;
  run.training = stage_training(part_, part_.text_epochs, context_.config.study.seed);
  run.training.learning_rate = model.text_rate;
  run.training.schedule = "constant * slanted_triangular";
  run.name = fmt::format("transfer-{}-text", model.kind);
  run.label = fmt::format("{}, on the task's text", model.kind);
  run.from = pretraining(model);
  run.data = data_.text();
  run.work = work_of_training(pretrained_model(model), static_cast<double>(part_.text_epochs * run.data.tokens),
                              static_cast<double>(part_.batch_tokens));
  return following_run(context_, run);
}

StageRun TransferStages::classifier(const TransferArm& arm, double learning_rate, int64_t seed) const {
  const TransferRecipe& recipe = arm.recipe;
  const ModelConfig model = pretrained_model(arm.model);
  const int64_t epochs = arm.examples > 0 ? part_.few_epochs : part_.epochs;
  const int64_t least = recipe.least_epochs(number_of_layers(model));
  if (epochs < least) {
    throw Error(fmt::format("transfer.{} is {}", arm.examples > 0 ? "few_epochs" : "epochs", epochs),
                fmt::format("the arm '{}' of a model of kind \"{}\" needs at least {} to train all of its layers",
                            recipe.name, arm.model.kind, least));
  }
  FollowingRun run;
  run.finetune.unfreeze = recipe.unfreeze;
  run.finetune.rate_divisor = recipe.discriminative ? part_.rate_divisor : 1;
  run.training = stage_training(part_, epochs, context_.config.study.seed + seed);
  run.training.learning_rate = learning_rate;
  run.training.schedule = recipe.slanted ? "constant * slanted_triangular" : "constant";
  run.name = fmt::format("transfer-{}-{}-labels{}-lr{:g}-seed{}", arm.model.kind, recipe.name, labels_of(arm),
                         learning_rate, run.training.seed);
  run.label =
      fmt::format("{}, {}, {} labels, lr {:g}", arm.model.kind, recipe.description, labels_of(arm), learning_rate);
  run.from = recipe.text ? on_text(arm.model) : pretraining(arm.model);
  run.data = data_.labels(arm.examples, run.training.seed);
  run.weights = recipe.weights;
  run.stage = kLabelStage;
  run.work =
      work_of_training(model, static_cast<double>(epochs * run.data.tokens), static_cast<double>(part_.batch_tokens));
  return following_run(context_, run);
}

}  // namespace plumb
