// How the parameters of a model are divided among processes: within layers, which the processes compute together
// (tensor parallelism, Shoeybi et al. 2019, "Megatron-LM", arXiv 1909.08053), and by layers, among the stages of a
// pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/nn/parameters.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Layers say what they divide (`divide`, `sum_gradient`), then `apply` replaces the parameters by this rank's shards.
/// Everything else, such as norms of the stream, is the same in all ranks: they compute it from the same numbers. Every
/// rank of the group must make the same calls. After that, `keep_stage` leaves each stage of a pipeline the parameters
/// that it uses; the others have no elements.
class LayerDivision {
 public:
  /// Of these parameters, none of which is divided yet, among the ranks of a group.
  LayerDivision(const Parameters& parameters, const Group& group);

  /// The same without processes, to see what the first of `ranks` would have: nothing can be exchanged.
  LayerDivision(const Parameters& parameters, int64_t ranks);

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const Group& pipeline() const { return pipeline_; }
  [[nodiscard]] int64_t ranks() const { return ranks_; }

  /// size/ranks. Throws Error if it is no integer.
  [[nodiscard]] int64_t per_rank(int64_t size) const;

  /// Each rank keeps an equal part of this parameter along a dimension. `parts`: the sizes of what is divided by
  /// itself, such as query, key and value; empty: all at once.
  void divide(const Tensor& value, int64_t dimension, std::vector<int64_t> parts = {});

  /// Each rank keeps the full parameter, but applies it to its part of the features only, so that the gradients of
  /// the ranks have to be summed.
  void sum_gradient(const Tensor& value);

  /// Makes the values of all parameters this rank's shards, in a new flat buffer. Values without memory
  /// (WithoutMemory) only change their shapes.
  void apply(Parameters& parameters);

  /// The same for the parameters that this rank's stage uses, rank s of `pipeline` being stage s. `users` [parameter]:
  /// the stages that use it, in ascending order. Every rank of `pipeline` calls it.
  void keep_stage(Parameters& parameters, const Group& pipeline, std::vector<std::vector<int64_t>> users);

  /// Whether this process is rank 0 of all that divide the model.
  [[nodiscard]] bool is_first() const { return group_.rank() == 0 && pipeline_.rank() == 0; }

  /// Whether this process's stage is the first that uses the parameter: in sums over stages, it counts it.
  [[nodiscard]] bool counts(size_t parameter) const {
    return pipeline_.size() == 1 || all_[parameter].users.front() == pipeline_.rank();
  }

  [[nodiscard]] bool is_divided(size_t parameter) const { return !all_[parameter].parts.empty(); }

  /// The shape that a parameter had.
  [[nodiscard]] const std::vector<int64_t>& full_sizes(size_t parameter) const { return all_[parameter].sizes; }

  /// This rank's shard of a tensor of the shape that a parameter had; other tensors are returned as they are.
  [[nodiscard]] Tensor shard(size_t parameter, const Tensor& full) const;

  /// The reverse, on the first process (is_first); anything on the others. Every process calls it with a tensor of the
  /// shape of its shard; other tensors are returned as they are.
  [[nodiscard]] Tensor full(size_t parameter, const Tensor& shard) const;

  /// The same on rank `root` of the group, in stages that use the parameter; and the reverse, which writes this rank's
  /// shard of root's `full`. Every rank of the group calls them.
  [[nodiscard]] Tensor gather(size_t parameter, const Tensor& shard, int64_t root) const;
  void scatter(size_t parameter, const Tensor& full, const Tensor& shard, int64_t root) const;

  /// Sends x from rank `root` of the group, in the first stage that uses the parameter, to the first process. Both, and
  /// rank 0 of that stage, call it with a tensor of the same shape, which it may overwrite.
  void send_to_first(size_t parameter, const Tensor& x, int64_t root) const;

  /// Sums the gradients of parameters for which sum_gradient was called, or that several stages use. `gradients`: one
  /// per parameter. Without pipelines, some may be undefined, the same ones in all ranks; they are skipped.
  void sum_gradients(std::vector<Tensor>& gradients) const;

 private:
  struct Entry {
    Tensor value;                  // the parameter
    std::vector<int64_t> sizes;    // of the full value
    int64_t dimension = 0;         // along which it is divided
    std::vector<int64_t> parts{};  // of the full value; empty: it is not divided
    bool sums_gradient = false;
    std::vector<int64_t> users{};  // stages
  };
  [[nodiscard]] Entry& entry_of(const Tensor& value);
  [[nodiscard]] bool is_used(const Entry& entry) const;
  /// Replaces every value by the shard that `shard` returns for it.
  void replace(Parameters& parameters, const std::function<Tensor(size_t, const Tensor&)>& shard);
  [[nodiscard]] Tensor shard_of(const Entry& entry, const Tensor& full, int64_t rank) const;
  /// Sums these gradients over a group.
  static void sum(std::vector<Tensor>& gradients, const std::vector<size_t>& which, const Group& group);

  /// Parameters that the same stages use, this one among them.
  struct Shared {
    Group group;
    std::vector<size_t> parameters;
  };

  Group group_;
  int64_t ranks_;
  Group pipeline_;
  std::vector<Shared> shared_;
  std::vector<Entry> all_;  // [parameter]
};

}  // namespace plumb
