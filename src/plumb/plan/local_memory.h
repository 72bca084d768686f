// The memory of `plumb train` on this machine, by use.
#pragma once

#include <string>

#include "plumb/base/options.h"
#include "plumb/model/config.h"
#include "plumb/plan/kept_activations.h"

namespace plumb::plan {

/// The settings of a run that determine its memory, besides the model and the batch.
struct LocalRun {
  std::string optimizer = "adam";
  VariantOptions options;           // [train.adam], …
  int64_t copies = 0;               // of the parameters in float32: a moving average, the copy of bfloat16 parameters
  bool adds_gradients = false;      // a step has several batches or micro-batches
  bool writes_checkpoints = false;  // while it computes further steps
  bool copies_in_step = false;      // the update keeps a copy of the old parameters (train.cautious)
};

/// Bytes of one process.
struct LocalMemory {
  double weights = 0;     // 4 per parameter
  double gradients = 0;   // 4 per parameter
  double optimizer = 0;   // its state, 8 per parameter for Adam
  double copies = 0;      // of the parameters
  double checkpoint = 0;  // weights, their copies and optimizer state, copied to be written while training continues
  double beside = 0;      // held besides the gradients at the end of the backward pass
  double table = 0;       // the gradient of the output matrix, which is beside that of earlier micro-batches
  KeptActivations activations;
  double libraries = 0;  // the program and its libraries, before a model is created
  bool adds_gradients = false;
  bool copies_in_step = false;

  /// Held throughout.
  [[nodiscard]] double constant() const { return weights + optimizer + copies + checkpoint + libraries; }
  /// The peak. Activations are freed while gradients are computed, so it is that of the activations at the end of the
  /// forward pass, or that of the gradients at the end of the backward pass or during the update.
  [[nodiscard]] double peak() const;
};

/// The bytes of an optimizer's state for a model, counted on tensors without memory.
double optimizer_bytes(const ModelConfig& config, const std::string& optimizer, const VariantOptions& options);

/// Throws Error for models that kept_activations does not know. `library`: resident_memory() before a model is created.
LocalMemory local_memory(const ModelConfig& config, const LocalBatch& batch, const LocalRun& run, double library);

/// Resident memory of this process in bytes, now and at its peak, from /proc/self/status; 0 if unavailable.
double resident_memory();
double peak_resident_memory();

}  // namespace plumb::plan
