// The memory of `plumb train` on this machine, by what it holds.
#pragma once

#include <string>

#include "plumb/base/options.h"
#include "plumb/model/config.h"
#include "plumb/plan/kept_activations.h"

namespace plumb::plan {

/// What of a run determines its memory, besides the model and the batch.
struct LocalRun {
  std::string optimizer = "adam";
  VariantOptions options;           // [train.adam], …
  int64_t copies = 0;               // of the parameters in float32: an average, a copy of numbers in bfloat16
  bool adds_gradients = false;      // a step has several batches or micro-batches
  bool writes_checkpoints = false;  // while further steps are computed
  bool copies_in_step = false;      // the update holds the parameters as they were (train.cautious)
};

/// Bytes of one process.
struct LocalMemory {
  double weights = 0;     // 4 per parameter
  double gradients = 0;   // 4 per parameter
  double optimizer = 0;   // its state, 8 per parameter for Adam
  double copies = 0;      // of the parameters
  double checkpoint = 0;  // weights and optimizer state, copied to be written while training continues
  double beside = 0;      // held beside the gradients at the end of the backward pass
  KeptActivations activations;
  double libraries = 0;  // the program and its libraries, before a model is made
  bool adds_gradients = false;
  bool copies_in_step = false;

  /// What is held throughout.
  [[nodiscard]] double constant() const { return weights + optimizer + copies + checkpoint + libraries; }
  /// The most that is held at a time. Gradients are computed as activations are given up, so the peak is that of the
  /// activations at the end of the forward pass, or that of the gradients at the end of the backward pass or during the
  /// update.
  [[nodiscard]] double peak() const;
};

/// The bytes that the optimizer of this name keeps for a model, counted on tensors without memory.
double optimizer_bytes(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options);

/// Throws Error for models that kept_activations does not know. `library`: resident_memory() before a model is made.
LocalMemory local_memory(const ModelConfig& config, const LocalBatch& batch, const LocalRun& run, double library);

/// Bytes of this process in memory now, and at most so far, from /proc/self/status; 0 if the system does not say.
double resident_memory();
double peak_resident_memory();

}  // namespace plumb::plan
