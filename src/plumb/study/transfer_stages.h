// The training runs of a transfer study. Arms share the stages they have in common: a run is identified by its own
// configuration and that of the run it starts from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumb/study/trained_run.h"
#include "plumb/study/transfer_data.h"

namespace plumb {

/// ULMFiT's fine-tuning recipe (Howard & Ruder 2018, arXiv 1801.06146, section 3), or a variant that changes one thing.
struct TransferRecipe {
  std::string name;                  // in transfer.arms
  std::string description;           // in figures: "without gradual unfreezing"
  bool weights = true;               // whether the classifier starts from pretrained weights
  bool text = true;                  // whether the language model is first fine-tuned on the task's text
  std::string unfreeze = "gradual";  // as finetune.unfreeze
  bool discriminative = true;        // whether each layer's learning rate is that of the layer above / rate_divisor
  bool slanted = true;               // slanted triangular schedule instead of a constant one

  /// The number of epochs after which every layer that the recipe unfreezes has been trained.
  [[nodiscard]] int64_t least_epochs(int64_t layers) const;
};

/// All of them.
const std::vector<TransferRecipe>& transfer_recipes();

/// The recipe of this name. Throws Error on an unknown name.
const TransferRecipe& transfer_recipe(const std::string& name);

/// The usual recipe for this kind of model among `arms`: "complete" for a recurrent model; for a Transformer,
/// "all-at-once" or else "complete". "" if `arms` has none of these.
std::string usual_recipe(const std::string& kind, const std::vector<std::string>& arms);

/// A run as a measurement. Its result is a TrainResult, or null if an earlier stage diverged.
struct StageRun {
  MeasurementRequest measurement;
  std::filesystem::path directory;
};

/// A stage's result; empty if an earlier stage diverged.
using PlannedStage = Planned<std::optional<TrainResult>>;
PlannedStage planned_stage(PartPlan& plan, const StageRun& stage);

/// A classifier's model, recipe and amount of data; runs of one arm differ in learning rate and seed.
struct TransferArm {
  TransferModel model;
  TransferRecipe recipe;
  int64_t examples = 0;  // number of training examples; 0: all
};

class TransferStages {
 public:
  /// Reads the labeled text but prepares no data. Throws Error like TransferData, and on models that cannot be made.
  TransferStages(StudyContext& context, const TransferStudy& part);

  /// The model that is pretrained on [data] with [train]'s settings: a masked language model if it is an encoder.
  [[nodiscard]] ModelConfig pretrained_model(const TransferModel& model) const;
  [[nodiscard]] StageRun pretraining(const TransferModel& model) const;

  /// The language model fine-tuned on the task's text, with discriminative rates and a slanted triangular schedule; if
  /// text_epochs is 0, the same as `pretraining`.
  [[nodiscard]] StageRun on_text(const TransferModel& model) const;

  /// A classifier trained with the study's seed plus `seed`. Throws Error if its epochs are too few to train every
  /// layer, or as TransferData::labels does.
  [[nodiscard]] StageRun classifier(const TransferArm& arm, double learning_rate, int64_t seed) const;

  /// The number of training examples of an arm.
  [[nodiscard]] int64_t labels_of(const TransferArm& arm) const {
    return arm.examples > 0 ? arm.examples : data_.size();
  }

 private:
  StudyContext& context_;
  TransferStudy part_;
  TransferData data_;
};

}  // namespace plumb
