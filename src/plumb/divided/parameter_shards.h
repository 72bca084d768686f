// The parameters of a model cut among the processes that share its batches: ZeRO, Rajbhandari et al. 2020, arXiv
// 1910.02054, by layers as in Zhao et al. 2023, "PyTorch FSDP", arXiv 2304.11277.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/divided/shard_layout.h"
#include "plumb/nn/layer_source.h"
#include "plumb/nn/parameters.h"
#include "plumb/ops/memory.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Each rank keeps an equal piece of every layer, and of all parameters outside of layers together; it updates these,
/// `own`. The values are either whole in every rank (ZeRO-2, where only gradients and the optimizer's state are cut),
/// or cut too (ZeRO-3): then those of a layer are there between `fetch` and `release` only. Every rank makes the same
/// calls.
class ParameterShards final : public LayerSource {
 public:
  /// Of parameters that are the same in all ranks, and outlive it. Values are cut by `cut`; if they have no memory yet
  /// (WithoutMemory), `own` is to be filled.
  ParameterShards(Parameters& parameters, const Group& group, bool cuts_values);

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const ShardLayout& layout() const { return layout_; }
  [[nodiscard]] bool cuts_values() const { return cuts_values_; }

  /// This rank's pieces: one-dimensional and possibly empty, one for each parameter, with its name. An optimizer
  /// updates them. Their flat buffer has those of all units, with padding; it is empty if values are whole.
  [[nodiscard]] const Parameters& own() const { return own_; }
  /// This rank's piece of a tensor of a parameter's shape (a view); other tensors are returned as they are.
  [[nodiscard]] Tensor piece(size_t parameter, const Tensor& whole) const;
  /// The reverse, on rank 0; undefined on the others. Every rank calls it with its piece; other tensors are returned as
  /// they are.
  [[nodiscard]] Tensor whole(size_t parameter, const Tensor& piece) const;
  /// Where an element of the parameters' flat buffer is in that of `own`; -1 if another rank has it.
  [[nodiscard]] int64_t place_in_own(int64_t element) const;

  /// After an update of `own`: makes the values those of all ranks, if they are whole.
  void publish() const;

  /// From now on this rank has its pieces alone, until `restore` makes the values whole again. Nothing happens if
  /// values are not cut. Of values without memory, the pieces are then 0.
  void cut();
  void restore();

  /// Makes the values of a layer whole in every rank, and frees them.
  void fetch(const LayerId& layer) override;
  void release(const LayerId& layer) override;
  /// The same for the parameters outside of layers, and for all; if `first_only`, rank 0 alone gets them.
  void fetch_rest() { fetch_unit(0, false); }
  void fetch_all(bool first_only = false);
  void release_all();

 private:
  void fetch_unit(size_t unit, bool first_only);
  void release_unit(size_t unit);
  /// The unit of a layer; 0 if it has no parameters.
  [[nodiscard]] size_t unit_of(const LayerId& layer) const;

  Parameters* parameters_;
  Group group_;
  bool cuts_values_;
  std::vector<LayerId> layers_;  // [unit - 1]; unit 0: the parameters outside of layers
  ShardLayout layout_;
  std::vector<int64_t> begins_;  // of each parameter in the flat buffer, then its end
  std::vector<int64_t> pieces_;  // where each unit's piece begins in the flat buffer of `own`
  Parameters own_;
  std::vector<Tensor> whole_;  // the values of each unit, (ranks·piece), without memory while released; empty: not cut
};

/// All parameters for the duration of a scope, in rank 0 alone, if the values are cut.
class FetchedParameters {
 public:
  /// `shards` may be null.
  explicit FetchedParameters(ParameterShards* shards)
      : shards_(shards != nullptr && shards->cuts_values() ? shards : nullptr) {
    if (shards_ != nullptr) shards_->fetch_all(true);
  }
  ~FetchedParameters() {
    if (shards_ == nullptr) return;
    shards_->release_all();
    ops::return_tensor_memory();
  }
  FetchedParameters(const FetchedParameters&) = delete;
  FetchedParameters& operator=(const FetchedParameters&) = delete;

 private:
  ParameterShards* shards_;
};

}  // namespace plumb
