// How much each sub-layer adds to the stream, and how similar it makes the tokens of a sequence. What the sizes of the
// matrices alone predict of both is in branch_recursion.h.
#pragma once

#include <map>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// A sub-layer f that reads the stream x and leaves a·x + b·f, with a and b by least squares over all tokens.
struct BranchPoint {
  LayerId id;
  double ratio = 0;  // |b|·√E‖f‖² / (|a|·√E‖x‖²): the length of what it adds, relative to what it is added to
  /// The mean cosine between two tokens of a sequence, in the stream before the sub-layer and after it; NaN if no
  /// sequence has two tokens.
  double similarity_before = 0, similarity = 0;
};

/// Collects forward passes: `begin` with the layouts of each, then all activations that are shown.
class BranchMeter {
 public:
  void begin(const Ragged& encoder, const Ragged& decoder);
  void see(const ActivationPoint& point, const Tensor& activation);

  /// Adds what the other processes of a group have seen: all then have the same points.
  void add_all(const Group& group);

  /// In the order of a forward pass; without the layers of recurrent models, which add nothing to a stream.
  [[nodiscard]] std::vector<BranchPoint> points() const;

 private:
  /// The stream between two sub-layers of the current pass, and what the next sub-layer has shown so far.
  struct Stream {
    Ragged layout;
    Tensor x, output, sum;
    double cosines = 0;
  };
  struct Sums {
    double xx = 0, ff = 0, xf = 0, sx = 0, sf = 0;  // of products over all elements; s: the sum
    double cosines_before = 0, cosines = 0, pairs = 0;
  };
  void finish(const LayerId& id, Stream& stream, const Tensor& after);

  std::map<StackKind, Stream> streams_;
  std::vector<ActivationPoint> order_;
  std::map<ActivationPoint, Sums> sums_;
};

/// Forward passes without dropout and without a graph. The processes of a group share the batches, and all get the
/// points.
std::vector<BranchPoint> measure_branches(Model& model, const std::vector<Batch>& batches, const Group& group = {});

}  // namespace plumb
