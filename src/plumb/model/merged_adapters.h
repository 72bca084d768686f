// The adapters of a saved model merged into its matrices.
#pragma once

#include "plumb/io/safetensors.h"
#include "plumb/nn/lora.h"

namespace plumb {

/// Merges the adapters (nn/lora.h) of a model's tensors into its matrices, for an equivalent model without adapters:
/// each W becomes W + (alpha/rank)·B·A. Tensors without adapters are returned as they are. Throws Error, beginning with
/// `origin`, if a part of an adapter is missing, or does not fit its matrix.
NamedTensors merge_adapters(const NamedTensors& tensors, const LoraOptions& options, const std::string& origin);

}  // namespace plumb
