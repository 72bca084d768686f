// The random features of FAVOR+, Choromanski et al. 2020, "Rethinking attention with Performers", arXiv 2009.14794.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/base/options.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// [model.favor]
struct FavorOptions {
  int64_t features = 0;
  int64_t redraw = 1000;
};
void describe(Fields& field, FavorOptions& options);

/// Directions w, (count, size), float64: blocks of `size` orthogonal rows, each row by itself distributed as N(0, I).
/// Determined by the name and the index of the draw.
Tensor orthogonal_directions(int64_t count, int64_t size, const std::string& name, int64_t draw);

/// w·x − ‖x‖²/2, the logarithms of φ(x)·√m: exp(x·y) = E[φ(x)·φ(y)]. x: (…, size), w: (m, size) → (…, m).
Tensor log_positive_features(const Tensor& x, const Tensor& directions);

}  // namespace plumb
