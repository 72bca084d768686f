// Labels for texts, from a model that classifies.
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
  int64_t length_limit = 0;           // tokens of an example, special ones not counted; a longer one is cut; 0: none
  int64_t batch_tokens = 4096;        // of a batch
  std::string precision = "float32";  // of matrix products: float32, bf16 or int8
};

/// A sentence, or two.
struct TextExample {
  std::string first, second;
};

/// Throws Error if the model does not classify, naming what does.
Classifies& classifier_of(Model& model);

/// Told after every batch, never by two threads at once, how many examples are done.
using ClassifyProgress = std::function<void(int64_t examples)>;

/// p(label) of every label for each example, in the order given: (examples, labels). Throws Error if the options are
/// impossible or the model's scores are not finite.
std::vector<std::vector<double>> classify(Classifies& model, const Tokenizer& tokenizer,
                                          const std::vector<TextExample>& examples, const ClassifyOptions& options,
                                          const ClassifyProgress& progress = {});

}  // namespace plumb
