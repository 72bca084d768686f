// The training runs of a transfer study. A stage that several arms have in common is one run: a run is named by its
// configuration and by that of the run whose weights it begins with.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/study/transfer_data.h"
#include "plumb/study/transfer_recipe.h"

namespace plumb {

/// A run as a measurement, whose result is that of training (TrainResult), or null if a run before it diverged.
struct StageRun {
  MeasurementRequest measurement;
  std::filesystem::path directory;
};

/// What a classifier learns, and how; runs of one arm differ in learning rate and seed.
struct TransferArm {
  TransferModel model;
  TransferRecipe recipe;
  int64_t examples = 0;  // number of labels; 0: all
};

class TransferStages {
 public:
  /// Prepares no data yet. Throws Error on models that cannot be made.
  TransferStages(StudyContext& context, const TransferStudy& part);

  /// The model that is pretrained on the study's [data] as in [train]: a masked language model if it is an encoder.
  [[nodiscard]] ModelConfig pretrained_model(const TransferModel& model) const;
  [[nodiscard]] StageRun pretraining(const TransferModel& model) const;

  /// The language model trained further on the text of the task, with discriminative rates and a slanted triangular
  /// schedule; without text_epochs, the same as `pretraining`.
  [[nodiscard]] StageRun on_text(const TransferModel& model) const;

  /// A classifier from the study's seed plus `seed`. Throws Error if its epochs are too few to train every layer.
  [[nodiscard]] StageRun classifier(const TransferArm& arm, double learning_rate, int64_t seed) const;

  /// The number of labeled examples of an arm.
  [[nodiscard]] int64_t labels_of(const TransferArm& arm) const {
    return arm.examples > 0 ? arm.examples : data_.size();
  }

 private:
  StudyContext& context_;
  TransferStudy part_;
  TransferData data_;
};

}  // namespace plumb
