// Flat vectors over the parameters of a model that several processes compute together (tensor parallelism).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/nn/layer_division.h"
#include "plumb/nn/parameters.h"

namespace plumb {

/// Each process has a part of every vector: the elements of the parameters that are cut, of which it has a piece; the
/// first one also has those of the parameters that all have. The parts have no element in common, so that a product of
/// vectors is the sum of the processes' products. In a model that is not divided, the part is the whole vector.
///
/// A vector may be over some of the parameters only: `places` in Parameters::all(), ascending.
class DividedVectors {
 public:
  /// `division`: of the model with these parameters, after it has been divided; null: it is not. Both must outlive
  /// this.
  DividedVectors(const Parameters& parameters, const LayerDivision* division);

  /// Of whole vectors and their parts. It outlives this object, but not what that refers to.
  [[nodiscard]] VectorSpace space(const std::vector<size_t>& places) const;

  /// This process's part of a whole vector, whose next elements `next` returns.
  [[nodiscard]] Tensor part(const std::function<Tensor(int64_t count)>& next, const std::vector<size_t>& places) const;

  /// The elements for this process's parameters, given its part. Every process calls it.
  [[nodiscard]] Tensor elements(const Tensor& part, const std::vector<size_t>& places) const;

  /// This process's part of a sum of derivatives, given those with respect to its parameters. Every process calls it.
  [[nodiscard]] Tensor part_of_derivatives(const Tensor& derivatives, const std::vector<size_t>& places) const;

 private:
  [[nodiscard]] int64_t size(const std::vector<size_t>& places) const;
  [[nodiscard]] std::vector<Tensor> own(const std::vector<size_t>& places) const;
  [[nodiscard]] bool keeps(size_t place) const {
    return division_->is_divided(place) || division_->group().rank() == 0;
  }

  const Parameters& parameters_;
  const LayerDivision* division_;
};

}  // namespace plumb
