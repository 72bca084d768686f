// A model that somebody named, as a classifier of texts: with its labels and what its texts go through.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/data/directory.h"
#include "plumb/decode/classify.h"
#include "plumb/interop/opened_model.h"

namespace plumb {

struct Classifier {
  std::shared_ptr<OpenedModel> opened;
  std::vector<std::string> labels;  // in the order of the model's outputs
  Tokenizer tokenizer;
  std::optional<DataDirectory> data;  // what was named, or what a run was trained on; an imported model may have none
  std::vector<int64_t> outputs = {};  // of the labels of `data`
};

/// `data`: the directory with the tokenizer; empty: the run's, or an imported model's own tokenizer. Throws Error if
/// the model cannot classify, or if the data have other labels or another vocabulary.
Classifier make_classifier(std::shared_ptr<OpenedModel> opened, const std::string& data);

/// Whether the training examples have a second sentence.
bool has_pairs(const Classifier& classifier);

/// p(label) for each label and example, (examples, labels), as decode/classify.h; length and direction of what is read
/// are those of the training.
std::vector<std::vector<double>> classify(const Classifier& classifier, const std::vector<TextExample>& examples,
                                          ClassifyOptions options, const ClassifyProgress& progress = {});

}  // namespace plumb
