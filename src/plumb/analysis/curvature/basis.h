// The basis built by Lanczos: orthonormal vectors, in memory or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// The sums of numbers over the processes that each have a part of every vector, the same in all of them; empty: this
/// process has whole vectors.
using SumOfParts = std::function<std::vector<double>(const std::vector<double>&)>;

/// Up to `capacity` vectors of `size` elements, float32 or float64, on one device.
class Basis {
 public:
  /// With a directory, the vectors are stored there in an unlinked file, which disappears with the object or the
  /// process. Throws Error if the directory cannot hold a file for all of them, or if the device is not the CPU.
  ///
  /// With `sum_of_parts`, a vector here is this process's part of one.
  Basis(int64_t capacity, int64_t size, const at::TensorOptions& options, const std::filesystem::path& directory = {},
        SumOfParts sum_of_parts = {});

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(vectors_.size()); }
  [[nodiscard]] const Tensor& operator[](int64_t i) const { return vectors_[static_cast<size_t>(i)]; }

  /// Adds scale·w as the next vector; w: (size).
  void append(const Tensor& w, double scale);

  struct Projection {
    std::vector<double> coefficients;  // (count): the components of w along the vectors
    double norm;                       // of the remainder of w
  };

  /// w ← (I − VVᵀ)²·w: classical Gram–Schmidt twice, which is sufficient (Giraud et al. 2005). Sums are in float64 and
  /// do not depend on the number of threads.
  [[nodiscard]] Projection orthogonalize(Tensor& w) const;

 private:
  class File;

  int64_t size_;
  at::TensorOptions options_;
  std::shared_ptr<File> file_;
  SumOfParts sum_of_parts_;
  std::vector<Tensor> vectors_;
};

}  // namespace plumb
