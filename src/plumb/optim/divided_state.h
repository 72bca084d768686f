// The state of a run whose model is divided among processes (nn/layer_division.h), as files contain it: of the whole
// model.
#pragma once

#include <optional>
#include <string>

#include "plumb/io/safetensors.h"
#include "plumb/nn/layer_division.h"

namespace plumb {

/// The parameter that a tensor is, or to which one of an optimizer's state belongs; empty if it belongs to several.
std::optional<size_t> parameter_of(const std::string& tensor, const Parameters& parameters);

/// This rank's pieces of named tensors: of parameters, or of an optimizer that acts by element (Optimizer::state).
/// Tensors that are not divided are returned as they are. `parameters`: of the model.
NamedTensors pieces_of(const NamedTensors& whole, const Parameters& parameters, const LayerDivision& division);

/// The reverse, on the division's first process; nothing on the others. Every process calls it. The tensors are copies.
NamedTensors whole_of(const NamedTensors& pieces, const Parameters& parameters, const LayerDivision& division);

}  // namespace plumb
