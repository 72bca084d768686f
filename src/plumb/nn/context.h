// The context of a forward pass besides its input: dropout, and observers of the activations.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/ragged.h"
#include "plumb/base/random.h"
#include "plumb/nn/carried_state.h"
#include "plumb/nn/layer_id.h"
#include "plumb/ops/dropout.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// Receives activations as they are computed: (where, tensor (tokens, width)).
using Observer = std::function<void(const ActivationPoint&, const Tensor&)>;

/// Receives tensors on their way from one part of a model to the next, and returns those that are passed on: the same,
/// or others of the same shape. For following gradients, and for disturbing activations.
using Tap = std::function<Tensor(const ActivationPoint&, const Tensor&)>;
/// Receives the scores of softmax attention, one sequence at a time: (which attention, tensor (heads, queries, keys)),
/// the argument of the softmax over keys, −∞ for keys that a query does not see. Without a graph.
using ScoreObserver = std::function<void(const LayerId&, const Tensor&)>;

/// The purpose of a forward pass, which matters only to norms over a batch and to profiled schemes.
enum class Pass {
  evaluation,   // validation, decoding: norms over a batch use their running averages
  training,     // norms use the batch and update the averages
  measurement,  // the training loss without dropout: norms use the batch and update nothing
  profiling     // the same, and schemes initialized from activations (Admin) set their parameters
};

/// One forward pass. Dropout sites are numbered in the order in which the pass reaches them, so a mask depends only on
/// the seed, step, site, and the place of a row in the step's batch, however that batch is divided.
class ForwardContext {
 public:
  /// No dropout: evaluation, decoding.
  ForwardContext() = default;
  /// No dropout.
  explicit ForwardContext(Pass pass, Group group = {}) : pass_(pass), group_(std::move(group)) {}
  /// Training step `step` with dropout probability `p`.
  ForwardContext(double p, uint64_t seed, int64_t step, Group group = {})
      : pass_(Pass::training), regularizes_(true), p_(p), seed_(seed), step_(step), group_(std::move(group)) {}

  [[nodiscard]] Pass pass() const { return pass_; }

  /// The processes that share the batch, for statistics over all of its tokens.
  [[nodiscard]] const Group& group() const { return group_; }

  /// The training step; 0 outside training.
  [[nodiscard]] int64_t step() const { return step_; }

  /// To be called where the rows of the activations change: those that follow belong to the sequences of `layout`,
  /// which may be a part of the step's batch (Ragged::set_origins).
  void enter(const Ragged& layout) {
    if (p_ == 0) return;
    runs_ = layout.runs();
    rows_ = layout.tokens();
  }

  /// The batch continues the one before: a model with a state begins with this one, if it is not empty, and replaces it
  /// by its last one. It must outlive the context.
  void carry(CarriedState& state) { carried_ = &state; }
  [[nodiscard]] CarriedState* carried() const { return carried_; }  // null: sequences begin anew

  void watch(Observer observer) { observer_ = std::move(observer); }
  [[nodiscard]] bool watched() const { return static_cast<bool>(observer_); }
  void show(const ActivationPoint& point, const Tensor& activation) const {
    if (observer_) observer_(point, activation);
  }

  /// A tap receives, of each stack, its `input` and its `result`; of each sub-layer, all tensors of the stream after it
  /// (`stream`, once for each); of each cross-attention, the encoder's states (`memory`).
  void tap(Tap tap) { tap_ = std::move(tap); }
  [[nodiscard]] Tensor passed(const ActivationPoint& point, const Tensor& x) const { return tap_ ? tap_(point, x) : x; }

  /// Scores are computed only for an observer; attention itself never forms them.
  void watch_scores(ScoreObserver observer) { score_observer_ = std::move(observer); }
  [[nodiscard]] bool scores_watched() const { return static_cast<bool>(score_observer_); }
  void show_scores(const LayerId& attention, const Tensor& scores) const {
    if (score_observer_) score_observer_(attention, scores);
  }

  /// Whether this is a training step: regularizers that have rates of their own (nn/regularization) take part in it.
  [[nodiscard]] bool regularizes() const { return regularizes_; }

  /// The key of the next site's mask, for one that belongs to no rows of the batch.
  [[nodiscard]] ops::DropoutKey mask_key() {
    return {seed_, stream_of("dropout") + (static_cast<uint64_t>(step_) << 16) + site_++, {}};
  }

  /// Throws Error if the batch is a part of a larger one and x has other rows than the layout entered last.
  Tensor dropout(const Tensor& x) { return ops::dropout(x, p_, next_key(x)); }
  Tensor add_dropout(const Tensor& residual, const Tensor& x) { return ops::add_dropout(residual, x, p_, next_key(x)); }

 private:
  ops::DropoutKey next_key(const Tensor& x) {
    if (!runs_.empty() && x.size(0) != rows_) throw Error("dropout of rows whose places in the batch are unknown");
    ops::DropoutKey key = mask_key();
    key.runs = runs_;
    return key;
  }

  Pass pass_ = Pass::evaluation;
  bool regularizes_ = false;
  double p_ = 0;
  uint64_t seed_ = 0;
  int64_t step_ = 0;
  uint64_t site_ = 0;
  std::vector<RowRun> runs_;  // of the layout entered last
  int64_t rows_ = 0;          // its tokens
  CarriedState* carried_ = nullptr;
  Observer observer_;
  Tap tap_;
  ScoreObserver score_observer_;
  Group group_;
};

}  // namespace plumb
