// tensor2tensor's grammar of residual schemes, with the letters that Marian adds.
#pragma once

#include <functional>
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
///   h  σ(t)∘y + (1 − σ(t))∘x, t = W·x + b, b initially 0, a highway (Marian; Srivastava et al. 2015, arXiv 1505.00387)
///                                                                  (postprocess only)
/// If `preprocess` is not empty, the stack ends with one more preprocess.
/// Parameters of sub-layer k (from 1) of a layer: normk, or post_normk for the second norm if both strings normalize;
/// repetitions of a letter add _2, _3, … (n and r count together); zero_addk.gamma; highwayk.weight, highwayk.bias.
/// Throws Error on other letters.
std::unique_ptr<ResidualScheme> make_tensor2tensor_scheme(const std::string& preprocess, const std::string& postprocess,
                                                          Parameters& parameters, const StackShape& shape);

/// Both strings for one sub-layer, and what some schemes change.
struct SubLayerProcessing {
  std::string preprocess{}, postprocess{};
  double carried = 1;         // a: carried·x + y
  double divisor = 1;         // of what the sub-layer reads, after `preprocess`
  double gate_bias = 0;       // h: b at initialization
  bool carries_read = false;  // x is what the sub-layer reads
  bool parallel = false;      // all sub-layers of a layer read the layer's input
};
using ProcessingOf = std::function<SubLayerProcessing(const StackShape&, int64_t layer, int64_t position)>;

/// Registers a scheme in this grammar. `last`: what is applied at the end of the stack.
bool add_tensor2tensor_scheme(const std::string& name, std::string title, std::string summary, std::string reference,
                              const std::string& last, const ProcessingOf& processing_of,
                              const Prescription& prescribes = {});

}  // namespace plumb
