// Judges every step of a run: whether its numbers are finite and no spikes, and what to do if not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/trouble/inspection.h"
#include "plumb/trouble/spikes.h"
#include "plumb/trouble/trouble.h"

namespace plumb {

/// A series of updates to watch for spikes. Of a table, a batch reads only some rows.
struct UpdateSeries {
  std::string name;
  bool table = false;
};

/// The numbers of a step, before its update.
struct StepNumbers {
  int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
};

/// The verdict on a step.
struct StepJudgment {
  using Action = TroubleAction;
  using Cause = TroubleCause;
  Action action = Action::update;
  Cause cause = Cause::none;
  std::string text;           // what happened, for the user; empty without a cause
  std::vector<Spike> spikes;  // new ones, or those acted upon
};

/// Identical on every process, since all see the same numbers. Its state is part of every checkpoint.
class TroubleJudge {
 public:
  /// `loss_limit`: limit of the loss after step `limit_from`; 0: no limit. Throws Error on an invalid configuration.
  TroubleJudge(const TroubleConfig& config, const std::vector<UpdateSeries>& series, double loss_limit,
               int64_t limit_from);

  /// Whether spike detection is on.
  [[nodiscard]] bool watches_spikes() const { return config_.window > 0; }

  /// The update norms ‖Δθ‖ of a step, one per series. They are compared after division by the learning rate, so that
  /// the schedule causes no spikes, and judged along with the next step's numbers. Throws Error on a wrong count.
  void see_updates(int64_t step, double learning_rate, const std::vector<double>& norms);

  /// Judges these numbers and adds them to their series; `record` updates the counters.
  [[nodiscard]] StepJudgment judge(const StepNumbers& numbers);

  /// Updates the counters after a judgment and, if it has a cause, adds a record. `inspected`: what a repetition of the
  /// step has found, if there was one.
  void record(const StepJudgment& judgment, const StepNumbers& numbers,
              const std::optional<InspectedStep>& inspected = {});

  /// Whether a step is passed over after a rollback, without an update.
  [[nodiscard]] bool passes_over(int64_t step) const { return step <= pass_over_until_; }
  void pass_over() { ++skipped_; }

  /// Steps without an update so far.
  [[nodiscard]] int64_t skipped() const { return skipped_; }
  /// Factor of the learning rate, from the rollbacks so far.
  [[nodiscard]] double rate_factor() const { return rate_factor_; }

  /// The step of the checkpoint that a rollback returns to.
  [[nodiscard]] int64_t anchor() const { return anchor_; }
  void set_anchor(int64_t step) { anchor_ = step; }
  /// Whether the last update is a spike that will cause a rollback, so that the current state must not be an anchor.
  [[nodiscard]] bool suspects() const { return !update_spikes_.empty() && config_.on_spike == "rollback"; }

  /// After a rollback to the state that this judge has: takes the counters and records of `now`, the judge that ordered
  /// it. Records of undone steps are dropped, except those of rollbacks.
  void continue_from(const TroubleJudge& now);

  [[nodiscard]] const std::vector<TroubleRecord>& records() const { return records_; }
  [[nodiscard]] const SpikeSeries& loss() const { return loss_; }
  [[nodiscard]] const SpikeSeries& gradient_norm() const { return gradient_norm_; }
  [[nodiscard]] const std::vector<SpikeSeries>& updates() const { return updates_; }

  /// The exact state that a resumed run needs. Reading throws Error on a malformed one.
  friend void describe(Fields& field, TroubleJudge& judge);

 private:
  [[nodiscard]] StepJudgment::Action allowed(StepJudgment::Action wanted, std::string& text) const;

  TroubleConfig config_;
  double loss_limit_;
  int64_t limit_from_;
  SpikeSeries loss_, gradient_norm_;
  std::vector<SpikeSeries> updates_;
  std::vector<Spike> update_spikes_;  // of the last update, not judged yet
  std::vector<TroubleRecord> records_;
  int64_t skipped_ = 0;
  int64_t skipped_in_row_ = 0;
  int64_t rollbacks_ = 0;
  int64_t pass_over_until_ = 0;
  int64_t anchor_ = 0;
  double rate_factor_ = 1;
};

}  // namespace plumb
