// The results of the watch "activations".
#pragma once

#include "plumb/base/config.h"

namespace plumb {

/// By layer or stack (token_similarity.h), and by attention (attention_scores.h; empty without softmax attention).
struct ActivationMeasurement {
  static constexpr const char* kWatch = "activations";
  NamedNumbers token_cosine;
  NamedNumbers relative_entropy;
  NamedNumbers lowest_relative_entropy;  // of the head with the lowest
  NamedNumbers largest_logit;
};
void describe(Fields& field, ActivationMeasurement& measurement);

}  // namespace plumb
