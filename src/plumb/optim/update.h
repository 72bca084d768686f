// What optimizers share: their state as named tensors.
#pragma once

#include <string>
#include <vector>

#include "plumb/model/safetensors.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// Appends a flat vector as tensors of the parameters' names behind `prefix`, and the reverse: copies them into the
/// vector. The latter throws Error, naming `origin`, if one is missing or of another shape.
void append_pieces(NamedTensors& tensors, const std::string& prefix, const Parameters& parameters, const Tensor& flat);
void load_pieces(const NamedTensors& tensors, const std::string& prefix, const Parameters& parameters,
                 const Tensor& flat, const std::string& origin);

/// The tensor of this name. Throws Error, naming `origin`, if there is none.
const Tensor& find_tensor(const NamedTensors& tensors, const std::string& name, const std::string& origin);

}  // namespace plumb
