// Learning rates of the maximal update parametrization (µP) for Adam: Yang et al. 2022, arXiv 2203.03466, table 3.
#pragma once

#include "plumb/nn/parameters.h"

namespace plumb {

/// The learning rate of a parameter relative to that in a model of the width at which the rate was chosen, with m the
/// ratio of the widths: 1/m for matrices and the output, 1/√m for embeddings, whose values are multiplied by √d_model,
/// and 1 for everything else.
double mup_rate_factor(const Parameter& parameter, double m);

}  // namespace plumb
