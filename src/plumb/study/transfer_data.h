// The data of a transfer study: a task's labeled text, encoded with the tokenizer of the study's [data].
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plumb/data/labeled_text.h"
#include "plumb/study/part.h"

namespace plumb {

/// [[transfer.model]]: a kind of model and the learning rates of its stages.
struct TransferModel {
  std::string kind = "awd-lstm";
  std::string initialization;
  double pretraining_rate = 0;
  double text_rate = 0.004;
  std::vector<double> learning_rates = {0.003, 0.01, 0.03};
};
void describe(Fields& field, TransferModel& model);

/// [transfer]: pretraining, then fine-tuning on the task's text and its labels, by recipes that each change one thing.
struct TransferStudy {
  std::string labels;
  std::string train;
  std::string valid;
  int64_t length_limit = 256;
  std::vector<std::string> arms = {"scratch",       "complete",   "no-text",    "no-discriminative",
                                   "no-unfreezing", "no-slanted", "last-layer", "all-at-once"};
  std::vector<int64_t> examples;
  int64_t seeds = 3;
  double rate_divisor = 2.6;
  int64_t text_epochs = 1;
  int64_t epochs = 6;
  int64_t few_epochs = 12;
  int64_t batch_tokens = 1024;
  std::vector<TransferModel> models;
};
void describe(Fields& field, TransferStudy& part);

/// A data directory that a stage is trained on.
struct StageData {
  std::filesystem::path directory;
  Json settings;       // that it was made with
  int64_t tokens = 0;  // in its training split
};

/// What the names of the measurements begin with that note how these were made.
inline constexpr const char* kTransferDataName = "transfer-data-";

/// Makes data directories in OUT/transfer, each once. All have the vocabulary of the study's [data], so that a model
/// passes from stage to stage unchanged.
class TransferData {
 public:
  /// Reads the labeled text. Throws Error if there is none or [data] is not running text.
  TransferData(StudyContext& context, const TransferStudy& part);

  /// The text of all training and validation examples without their labels, for language models.
  [[nodiscard]] StageData text() const;

  /// All labeled examples or, with `examples` above 0, about that many training examples, drawn by `seed` and
  /// stratified by label, with at least one per label. Throws Error if `examples` is not below size() or is below the
  /// number of labels.
  [[nodiscard]] StageData labels(int64_t examples, int64_t seed) const;

  /// The number of training examples.
  [[nodiscard]] int64_t size() const { return std::ssize(train_.examples); }

 private:
  [[nodiscard]] StageData made(const std::string& name, Json settings,
                               const std::function<Json(const std::filesystem::path&)>& make) const;

  StudyContext& context_;
  int64_t length_limit_;
  Json origin_;  // of the labeled text
  LabeledText train_, valid_;
};

}  // namespace plumb
