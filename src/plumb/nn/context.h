// The context of a forward pass: dropout, and observers of activations.
#pragma once

#include <functional>
#include <string_view>
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

class LayerSource;
struct LayerRange;

/// Receives activations as they are computed: (where, tensor (tokens, width)).
using Observer = std::function<void(const ActivationPoint&, const Tensor&)>;

/// Receives tensors passed from one part of a model to the next, and returns the tensors to pass on, of the same shape.
/// For tracking gradients and perturbing activations.
using Tap = std::function<Tensor(const ActivationPoint&, const Tensor&)>;
/// Receives the scores of softmax attention, one sequence at a time: (which attention, tensor (heads, queries, keys)),
/// the argument of the softmax over keys, −∞ for masked keys. Without a graph.
using ScoreObserver = std::function<void(const LayerId&, const Tensor&)>;

/// The purpose of a forward pass, which matters only to norms over a batch and to profiled schemes.
enum class Pass {
  evaluation,   // validation, decoding: norms over a batch use their running averages
  training,     // norms use the batch and update the averages
  measurement,  // the training loss without dropout: norms use the batch and update nothing
  profiling     // like measurement, and schemes initialized from activations (Admin) set their parameters
};

/// One forward pass. Dropout sites are numbered in the order in which the pass reaches them, so a mask depends only on
/// the seed, step, site, and the place of a row in the step's batch, not on how that batch is split.
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

  /// Marks a pass that only keeps step with the other processes, over examples that one of them has: they are not part
  /// of the statistics of a norm over the batch.
  void set_placeholder(bool placeholder) { placeholder_ = placeholder; }
  [[nodiscard]] bool placeholder() const { return placeholder_; }

  /// Layers keep their inputs instead of their activations, which the backward pass computes again. Not while
  /// activations are watched or tapped.
  void recompute() { recomputes_ = true; }
  [[nodiscard]] bool recomputes() const { return recomputes_ && !observer_ && !tap_ && !score_observer_; }

  /// Where layers get their parameters from, which must outlive the graph; null: they have them.
  void set_source(LayerSource* source) { source_ = source; }
  [[nodiscard]] LayerSource* source() const { return source_; }

  /// This context for computing the same again: the same masks and statistics, but no averages of norms are updated.
  [[nodiscard]] ForwardContext replayed() const {
    ForwardContext same = *this;
    if (pass_ == Pass::training) same.pass_ = Pass::measurement;
    return same;
  }

  /// The training step; 0 outside training.
  [[nodiscard]] int64_t step() const { return step_; }

  /// Call this where the rows of the activations change: from here on, rows belong to the sequences of `layout`, which
  /// may be part of the step's batch (Ragged::set_origins).
  void enter(const Ragged& layout) {
    if (!regularizes_) return;
    runs_ = layout.runs();
    rows_ = layout.tokens();
  }

  /// The batch continues the previous one: a stateful model starts from `state`, unless it is empty, and stores its
  /// final state in it. `state` must outlive the context.
  void carry(CarriedState& state) { carried_ = &state; }
  [[nodiscard]] CarriedState* carried() const { return carried_; }  // null: sequences start from scratch

  /// Only the layers of `range` are run, before which the pass has come by `sites` dropout sites. `range` must
  /// outlive the context.
  void run_layers(LayerRange& range, uint64_t sites) {
    layer_range_ = &range;
    site_ = sites;
  }
  [[nodiscard]] LayerRange* layer_range() const { return layer_range_; }  // null: all layers
  [[nodiscard]] uint64_t sites() const { return site_; }                  // so far

  void watch(Observer observer) { observer_ = std::move(observer); }
  [[nodiscard]] bool watched() const { return static_cast<bool>(observer_); }
  void show(const ActivationPoint& point, const Tensor& activation) const {
    if (observer_) observer_(point, activation);
  }

  /// A tap receives `input` and `result` of each stack; all tensors of the stream after each sub-layer or recurrent
  /// layer (`stream`, once per tensor); and the encoder's states in each cross-attention (`memory`).
  void tap(Tap tap) { tap_ = std::move(tap); }
  [[nodiscard]] Tensor passed(const ActivationPoint& point, const Tensor& x) const { return tap_ ? tap_(point, x) : x; }

  /// Scores are computed for the observer alone; fused attention does not form them.
  void watch_scores(ScoreObserver observer) { score_observer_ = std::move(observer); }
  [[nodiscard]] bool scores_watched() const { return static_cast<bool>(score_observer_); }
  void show_scores(const LayerId& attention, const Tensor& scores) const {
    if (score_observer_) score_observer_(attention, scores);
  }

  /// Whether this is a training step, in which regularizers with separate rates (nn/regularization.h) are active.
  [[nodiscard]] bool regularizes() const { return regularizes_; }

  /// The key of the next site's mask, for masks that are not tied to rows of the batch. Throws Error if the step has
  /// more sites than there are keys for it: they would repeat masks of the next step.
  [[nodiscard]] ops::DropoutKey mask_key() {
    if (site_ >= kMostSites)
      throw Error("a training step has more than 65536 places of dropout", "use fewer layers, or model.dropout = 0");
    return {seed_, stream_of("dropout") + static_cast<uint64_t>(step_) * kMostSites + site_++, {}};
  }

  /// The key of a mask that takes no site, since it belongs to a named place within a layer and, if it is a mask for
  /// one sequence, to the row of the step's batch at which the sequence begins.
  [[nodiscard]] ops::DropoutKey mask_key_at(std::string_view place, int64_t row = 0) const {
    return {seed_, stream_of(place) + (static_cast<uint64_t>(step_) << 40U) + static_cast<uint64_t>(row), {}};
  }

  /// Dropout in training with a rate of its own at such a place. x: the rows of the layout entered last.
  [[nodiscard]] Tensor dropout_at(std::string_view place, const Tensor& x, double p) const {
    if (p == 0 || !regularizes_) return x;
    require_known_rows(x);
    ops::DropoutKey key = mask_key_at(place);
    key.runs = runs_;
    return ops::dropout(x, p, key);
  }

  /// Throws Error if the batch is part of a larger one and the rows of x are not those of the layout entered last.
  Tensor dropout(const Tensor& x) { return ops::dropout(x, p_, next_key(x)); }
  Tensor add_dropout(const Tensor& residual, const Tensor& x) { return ops::add_dropout(residual, x, p_, next_key(x)); }

 private:
  static constexpr uint64_t kMostSites = 65536;  // of a step

  ops::DropoutKey next_key(const Tensor& x) {
    if (p_ == 0) {  // no mask is drawn
      ++site_;
      return {};
    }
    require_known_rows(x);
    ops::DropoutKey key = mask_key();
    key.runs = runs_;
    return key;
  }

  void require_known_rows(const Tensor& x) const {
    if (!runs_.empty() && x.size(0) != rows_) throw Error("dropout of rows whose places in the batch are unknown");
  }

  Pass pass_ = Pass::evaluation;
  bool regularizes_ = false;
  bool placeholder_ = false;
  bool recomputes_ = false;
  LayerSource* source_ = nullptr;
  double p_ = 0;
  uint64_t seed_ = 0;
  int64_t step_ = 0;
  uint64_t site_ = 0;
  std::vector<RowRun> runs_;  // of the layout entered last
  int64_t rows_ = 0;          // its tokens
  CarriedState* carried_ = nullptr;
  LayerRange* layer_range_ = nullptr;
  Observer observer_;
  Tap tap_;
  ScoreObserver score_observer_;
  Group group_;
};

}  // namespace plumb
