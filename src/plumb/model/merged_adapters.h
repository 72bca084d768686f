// The adapters of a saved model merged into its matrices.
#pragma once

#include "plumb/io/safetensors.h"
#include "plumb/nn/lora.h"

namespace plumb {

/// The tensors of a model with these adapters (nn/lora.h), as those of one without them that computes the same: each
/// W becomes W + (alpha/rank)·B·A. Tensors without adapters are returned as they are. Throws Error that begins with
/// `origin` if a part of an adapter is missing, or does not fit its matrix.
NamedTensors merge_adapters(const NamedTensors& tensors, const LoraOptions& options, const std::string& origin);

}  // namespace plumb
