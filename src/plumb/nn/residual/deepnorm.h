// DeepNorm's two constants, shared by its residual scheme and its initialization.
#pragma once

#include "plumb/nn/model_depth.h"

namespace plumb {

/// x ← LN(alpha·x + f(x)), with the matrices of f initialized divided by `divisor` (Wang et al. 2022, arXiv
/// 2203.00555; divisor is the inverse of the paper's β). N encoder layers, M decoder layers.
///   N or M alone:       alpha = (2N)^(1/4),               divisor = (8N)^(1/4)
///   both, the encoder:  alpha = 0.81·(N⁴M)^(1/16),        divisor = (N⁴M)^(1/16)/0.87
///   both, the decoder:  alpha = (3M)^(1/4),               divisor = (12M)^(1/4)
/// The authors' code (torchscale, architecture/encoder.py) divides the encoder's matrices by (N⁴M)^(1/16)/1.15 instead.
/// 1/1.15 is 0.87: the code seems to divide by the factor where it should multiply. The paper's gain is used here.
struct DeepnormConstants {
  double alpha;
  double divisor;
};
DeepnormConstants deepnorm_constants(const ModelDepth& depth, bool decoder);

}  // namespace plumb
