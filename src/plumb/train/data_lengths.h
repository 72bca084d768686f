// Whether the lengths of the examples fit the configuration.
#pragma once

#include "plumb/model/config.h"
#include "plumb/run/config.h"
#include "plumb/task/task.h"

namespace plumb {

/// Throws Error, naming the split and the example, if a sequence of the training or validation split is longer than the
/// model reads (longest_sequence).
void require_short_sequences(const Task& task, const ModelConfig& config);

/// Says so if training examples have more tokens than train.micro_batch_tokens, which they then exceed.
void say_what_exceeds_micro_batches(const Task& task, const TrainConfig& config);

}  // namespace plumb
