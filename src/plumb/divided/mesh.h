// The processes of a run by what they divide: some share the examples of every batch, some the layers of the model.
#pragma once

#include <cstdint>

#include "plumb/parallel/group.h"

namespace plumb {

/// Processes as a grid. Those of one `tensor` group compute the same examples, each with its part of every layer; those
/// of one `pipeline` group compute the same examples, each with some of the layers, in the order of the ranks; those of
/// one `data` group have the same part of the model, and different examples. Ranks of a tensor group are adjacent, so
/// that they are on one machine if its number of processes is a multiple of their number; those of a pipeline, with all
/// of its tensor groups, follow each other.
struct Mesh {
  Group all;
  Group data;
  Group pipeline;
  Group tensor;

  /// A single process.
  Mesh() = default;

  /// Divides a group into pipelines of this many stages, each of tensor groups of this size. Every rank calls it.
  /// Throws Error if that is impossible.
  Mesh(const Group& group, int64_t tensor_size, int64_t pipeline_size = 1);

  /// Throws Error unless this number of processes can be divided into such groups.
  static void require(int64_t processes, int64_t tensor_size, int64_t pipeline_size = 1);

  /// What this rank has exchanged in all of them.
  [[nodiscard]] ExchangeCost cost() const;

  /// Leaves all of them.
  void leave() const;

 private:
  /// Else `data` is the same group as `all`.
  [[nodiscard]] bool divided() const { return tensor.size() > 1 || pipeline.size() > 1; }
};

}  // namespace plumb
