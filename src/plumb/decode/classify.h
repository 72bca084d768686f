// Predicts labels of texts with a model that can classify.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/text/tokenizer.h"

namespace plumb {

struct ClassifyOptions {
  int64_t length_limit = 0;     // tokens per example, without special tokens; longer ones are truncated; 0: unlimited
  int64_t batch_tokens = 4096;  // per batch
  bool backward = false;        // whether the model reads each sentence from its end to its beginning
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

/// One sentence, or two.
struct TextExample {
  std::string first, second;
};

/// Throws Error if the model cannot classify.
Classifies& classifier_of(Model& model);

/// Called after each batch, never concurrently, with the number of finished examples.
using ClassifyProgress = std::function<void(int64_t examples)>;

/// p(label) for each label and example, in the given order: (examples, labels). Throws Error if the options are invalid
/// or the model's scores are not finite.
std::vector<std::vector<double>> classify(Classifies& model, const Tokenizer& tokenizer,
                                          const std::vector<TextExample>& examples, const ClassifyOptions& options,
                                          const ClassifyProgress& progress = {});

}  // namespace plumb
