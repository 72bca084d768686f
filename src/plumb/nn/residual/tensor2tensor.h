// tensor2tensor's grammar of residual schemes.
#pragma once

#include <memory>
#include <string>

#include "plumb/nn/residual/residual.h"

namespace plumb {

/// `preprocess` acts on what a sub-layer reads, `postprocess` on what it gives; both are read left to right:
///   d dropout   n normalise   a add the sub-layer's input (postprocess only)
/// A scheme that preprocesses ends its stack with one more preprocess. Throws Error on any other letter, and where both
/// strings normalise (their norms would share a name).
std::unique_ptr<ResidualScheme> make_tensor2tensor_scheme(const std::string& preprocess, const std::string& postprocess,
                                                          Parameters& parameters, const StackShape& shape);

}  // namespace plumb
