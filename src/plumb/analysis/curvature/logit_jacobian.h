// The derivative of a batch's logits with respect to the parameters.
#pragma once

#include <cstddef>
#include <vector>

#include "plumb/analysis/curvature/output_jacobian.h"
#include "plumb/model/model.h"

namespace plumb {

/// J of the logits, (labels, classes), with respect to the parameters, in the order of Parameters::all(); no dropout.
/// The model must outlive it, and its parameters must not change during its lifetime.
OutputJacobian logit_jacobian(Model& model, const Batch& batch);

/// 0, 1, …: the places of all parameters.
std::vector<size_t> all_places(const Parameters& parameters);

}  // namespace plumb
