// NumPy's array file format, version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once

#include <filesystem>

#include "plumb/ops/torch.h"

namespace plumb {

/// Writes a tensor of any shape in float32, in C order, atomically; `numpy.load` reads it. Throws Error if writing
/// fails.
void save_npy(const std::filesystem::path& path, const at::Tensor& tensor);

}  // namespace plumb
