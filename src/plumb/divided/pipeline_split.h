// The stages of a pipeline: which layers each has, which parameters it uses, and what passes from one to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/model/model.h"
#include "plumb/nn/layer_range.h"

namespace plumb {

/// Throws Error unless a model of this configuration can be cut into this many parts of consecutive layers. If only the
/// number does not fit, the hint names the nearest that does.
void require_stages(const ModelConfig& config, int64_t stages, int64_t chunks);

/// A model cut into stages·chunks parts of consecutive layers, whose numbers differ by at most one. Part p belongs to
/// stage p % stages. Nothing is assumed about layers: a pass over a few tokens, one layer at a time, shows which
/// parameters the result of each depends on, what tensors pass to the next, and how many dropout sites come before.
class PipelineSplit {
 public:
  /// Of a model none of whose layers has been taken away, which must outlive it. Its parameters may have no memory. If
  /// ranks divide its layers, all of them call it.
  PipelineSplit(Model& model, int64_t stages, int64_t chunks);

  /// [parameter]: the stages that use it, in ascending order; stage 0 if none does.
  [[nodiscard]] const std::vector<std::vector<int64_t>>& users() const { return users_; }

  [[nodiscard]] int64_t parts() const { return stages_ * chunks_; }

  /// The number of layers of a part.
  [[nodiscard]] int64_t layers(int64_t part) const { return static_cast<int64_t>(first(part + 1) - first(part)); }

  /// A part's layers, without tensors, and the dropout sites before them.
  [[nodiscard]] LayerRange layer_range(int64_t part) const;
  [[nodiscard]] uint64_t sites(int64_t part) const { return inputs_[first(part)].sites; }

  /// The number of elements that pass to this part for a batch; part 0 gets none.
  [[nodiscard]] int64_t count(int64_t part, const Batch& batch) const;

  /// A vector of that many elements as the tensors that enter the part: leaves that require gradients, if
  /// gradients are computed at all.
  [[nodiscard]] LayerRange input_of(int64_t part, const Batch& batch, const Tensor& flat) const;

 private:
  /// What passes to a layer, from the one before.
  struct LayerInput {
    LayerRange sample{};  // of a few tokens
    uint64_t sites = 0;
  };
  [[nodiscard]] size_t first(int64_t part) const;
  /// The sizes of the tensors that enter a part for a batch, in the order of LayerRange::tensors.
  [[nodiscard]] std::vector<std::vector<int64_t>> sizes_of(int64_t part, const Batch& batch) const;

  int64_t stages_, chunks_, layers_;
  int64_t encoder_layers_;
  std::vector<std::vector<int64_t>> users_;
  std::vector<LayerInput> inputs_;  // [layer]
};

}  // namespace plumb
