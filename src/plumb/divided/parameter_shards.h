// The parameters of a model sharded among the processes that share its batches: ZeRO, Rajbhandari et al. 2020, arXiv
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

/// Each rank keeps an equal shard of every layer, and of all parameters outside of layers together; it updates these,
/// `local`. The values are either full in every rank (ZeRO-2: only gradients and the optimizer's state are sharded), or
/// sharded, too (ZeRO-3): then those of a layer are there between `unshard` and `reshard` only. Every rank makes the
/// same calls.
class ParameterShards final : public LayerSource {
 public:
  /// Of parameters that are the same in all ranks, and outlive it. `shards_parameters`: ZeRO-3; the values stay full
  /// until `shard_values`, and if they have no memory yet (WithoutMemory), the caller fills `local`.
  ParameterShards(Parameters& parameters, const Group& group, bool shards_parameters);

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const ShardLayout& layout() const { return layout_; }
  [[nodiscard]] bool shards_parameters() const { return shards_parameters_; }

  /// This rank's shards: one-dimensional and possibly empty, one for each parameter, with its name. An optimizer
  /// updates them. Their flat buffer has those of all units, with padding; it is empty if values stay full.
  [[nodiscard]] const Parameters& local() const { return local_; }
  /// This rank's shard of a tensor of a parameter's shape (a view); other tensors are returned as they are.
  [[nodiscard]] Tensor shard(size_t parameter, const Tensor& full) const;
  /// The reverse, on rank 0; undefined on the others. Every rank calls it with its shard; other tensors are returned as
  /// they are.
  [[nodiscard]] Tensor full(size_t parameter, const Tensor& shard) const;
  /// Where an element of the parameters' flat buffer is in that of `local`; -1 if another rank has it.
  [[nodiscard]] int64_t index_in_local(int64_t element) const;

  /// After an update of `local`: makes the values those of all ranks, if they stay full.
  void all_gather() const;

  /// From now on this rank has its shards alone, until `restore` makes the values full again. Nothing happens unless
  /// parameters are sharded. Of values without memory, the shards are then 0.
  void shard_values();
  void restore();

  /// Gathers the values of a layer in every rank, and frees them.
  void unshard(const LayerId& layer) override;
  void reshard(const LayerId& layer) override;
  /// The same for the parameters outside of layers, and for all; if `first_only`, rank 0 alone gets them.
  void unshard_rest() { unshard_unit(0, false); }
  void unshard_all(bool first_only = false);
  void reshard_all();

 private:
  void unshard_unit(size_t unit, bool first_only);
  void reshard_unit(size_t unit);
  /// The unit of a layer; 0 if it has no parameters.
  [[nodiscard]] size_t unit_of(const LayerId& layer) const;

  Parameters* parameters_;
  Group group_;
  bool shards_parameters_;
  std::vector<LayerId> layers_;  // [unit - 1]; unit 0: the parameters outside of layers
  ShardLayout layout_;
  std::vector<int64_t> begins_;           // of each parameter in the flat buffer, then its end
  std::vector<int64_t> begins_in_local_;  // where each unit's shard begins in the flat buffer of `local`
  Parameters local_;
  std::vector<Tensor> full_;  // the values of each unit, (ranks·shard), without memory while sharded; empty: never
};

/// All parameters for the duration of a scope, in rank 0 alone, if they are sharded.
class UnshardedParameters {
 public:
  /// `shards` may be null.
  explicit UnshardedParameters(ParameterShards* shards)
      : shards_(shards != nullptr && shards->shards_parameters() ? shards : nullptr) {
    if (shards_ != nullptr) shards_->unshard_all(true);
  }
  ~UnshardedParameters() {
    if (shards_ == nullptr) return;
    shards_->reshard_all();
    ops::return_tensor_memory();
  }
  UnshardedParameters(const UnshardedParameters&) = delete;
  UnshardedParameters& operator=(const UnshardedParameters&) = delete;

 private:
  ParameterShards* shards_;
};

}  // namespace plumb
