// The data of a transfer study: the labeled text of a task, encoded with the tokenizer of the study's [data].
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "plumb/data/labeled_text.h"
#include "plumb/study/part.h"

namespace plumb {

/// A data directory that a stage is trained on.
struct StageData {
  std::filesystem::path directory;
  Json settings;       // what it was made from
  int64_t tokens = 0;  // in its training split
};

/// Makes data directories in OUT/transfer, each once. All have the vocabulary of the study's [data], so that a model
/// passes from stage to stage as it is.
class TransferData {
 public:
  /// Reads the labeled text. Throws Error without any, or if [data] is not running text.
  TransferData(StudyContext& context, const TransferStudy& part);

  /// The text of all training examples without their labels, for language models; validated on that of the
  /// validation examples.
  [[nodiscard]] StageData text() const;

  /// All labeled examples or, with `examples` above 0, about that number of training examples, drawn by `seed` in
  /// proportion to their labels, of which each keeps at least one. Throws Error if there are no more than `examples`.
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
