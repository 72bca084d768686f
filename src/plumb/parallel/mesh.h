// The processes of a run by what they divide: some share the examples of every batch, some the layers of the model.
#pragma once

#include <cstdint>

#include "plumb/parallel/group.h"

namespace plumb {

/// Processes as a grid. Those of one `tensor` group compute the same examples, each with its part of every layer; those
/// of one `data` group have the same part of the layers, and different examples. Ranks of a tensor group are adjacent,
/// so that they are on one machine if its number of processes is a multiple of their number.
struct Mesh {
  Group all;
  Group data;
  Group tensor;

  /// A single process.
  Mesh() = default;

  /// Divides a group into tensor groups of this size. Every rank calls it. Throws Error if that is impossible.
  Mesh(const Group& group, int64_t tensor_size);

  /// What this rank has exchanged in all three.
  [[nodiscard]] ExchangeCost cost() const;

  /// Leaves all three groups.
  void leave() const;

 private:
  [[nodiscard]] bool divided() const { return tensor.size() > 1; }  // else `data` is the same group as `all`
};

}  // namespace plumb
