// tensor2tensor's grammar of residual schemes, with the letters that Marian adds.
#pragma once

#include <memory>
#include <string>

#include "plumb/nn/residual/residual.h"

namespace plumb {

/// `preprocess` is applied to the input of a sub-layer and `postprocess` to its output y; both are read left to right.
/// x is the sub-layer's input in the stream.
///   d  dropout
///   n  the norm of the model
///   r  RMSNorm, regardless of the model's norm (Marian)
///   a  x + y                                                       (postprocess only)
///   z  x + γ·y, γ a trained scalar, initially 0                    (postprocess only)
///   h  σ(t)∘y + (1 − σ(t))∘x, t = W·x + b, a highway (Marian)      (postprocess only)
/// If `preprocess` is not empty, the stack ends with one more preprocess.
/// Parameters of sub-layer k (from 1) of a layer: normk, or post_normk for the second norm if both strings normalize;
/// repetitions of a letter add _2, _3, … (n and r count together); zero_addk.gamma; highwayk.weight, highwayk.bias.
/// Throws Error on other letters.
std::unique_ptr<ResidualScheme> make_tensor2tensor_scheme(const std::string& preprocess, const std::string& postprocess,
                                                          Parameters& parameters, const StackShape& shape);

}  // namespace plumb
