// Judges every step of a run: whether its numbers are finite and like those before it, and what follows if not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/train/spikes.h"
#include "plumb/train/trouble.h"

namespace plumb {

/// The numbers of a step, before its update.
struct StepNumbers {
  int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
};

/// What a step comes to.
struct StepJudgment {
  enum class Action { update, skip, rollback, diverge };
  enum class Cause { none, nonfinite, limit, spike };
  Action action = Action::update;
  Cause cause = Cause::none;
  std::string text;           // what happened, for people; empty without a cause
  std::vector<Spike> spikes;  // those that are new or acted upon
};

/// The same on every process, since all see the same numbers. Its state is part of every checkpoint.
class TroubleJudge {
 public:
  /// `series`: names of the updates that are compared with their past. `loss_limit`: of the loss after step
  /// `limit_from`; 0: none.
  TroubleJudge(const TroubleConfig& config, const std::vector<std::string>& series, double loss_limit,
               int64_t limit_from);

  /// Whether spikes are looked for at all.
  [[nodiscard]] bool watches_spikes() const { return config_.window > 0; }

  /// The updates ‖Δθ‖ of a step, one for each series, made at this learning rate: compared per unit of it, so that a
  /// schedule is no trouble. Judged along with the next step's numbers.
  void see_updates(int64_t step, double learning_rate, const std::vector<double>& norms);

  /// What follows from these numbers. The counters are those after it.
  [[nodiscard]] StepJudgment judge(const StepNumbers& numbers);

  /// Counts what was done, and keeps the record of it.
  void record(const StepJudgment& judgment, const StepNumbers& numbers, const Json& findings);

  /// A batch that a rollback passes over: no step is taken on it.
  [[nodiscard]] bool passes_over(int64_t step) const { return step <= pass_over_until_; }
  void pass_over() { ++skipped_; }

  /// Steps without an update so far.
  [[nodiscard]] int64_t skipped() const { return skipped_; }
  /// Multiplies the learning rate.
  [[nodiscard]] double rate_factor() const { return rate_factor_; }

  /// The checkpoint that a rollback returns to, by its step.
  [[nodiscard]] int64_t anchor() const { return anchor_; }
  void set_anchor(int64_t step) { anchor_ = step; }
  /// Whether the last update is a spike on which a rollback follows: no state to return to.
  [[nodiscard]] bool suspects() const { return !update_spikes_.empty() && config_.on_spike == "rollback"; }

  /// After a rollback: the state of the checkpoint, with the counters and records of the run. Records after the
  /// checkpoint are dropped along with the steps that they tell of, but for those of rollbacks.
  void return_to(const Json& state);

  [[nodiscard]] const std::vector<TroubleRecord>& records() const { return records_; }
  [[nodiscard]] const SpikeSeries& loss() const { return loss_; }
  [[nodiscard]] const SpikeSeries& gradient_norm() const { return gradient_norm_; }
  [[nodiscard]] const std::vector<SpikeSeries>& updates() const { return updates_; }

  /// Exactly what a resumed run needs; and the reverse. A null is the state of a run that has seen nothing.
  [[nodiscard]] Json state() const;
  void load_state(const Json& json);

 private:
  [[nodiscard]] StepJudgment::Action allowed(StepJudgment::Action wanted, std::string& text) const;

  TroubleConfig config_;
  double loss_limit_;
  int64_t limit_from_;
  SpikeSeries loss_, gradient_norm_;
  std::vector<SpikeSeries> updates_;
  std::vector<Spike> update_spikes_;  // of the last step, not judged yet
  std::vector<TroubleRecord> records_;
  int64_t skipped_ = 0;
  int64_t skipped_in_row_ = 0;
  int64_t rollbacks_ = 0;
  int64_t pass_over_until_ = 0;
  int64_t anchor_ = 0;
  double rate_factor_ = 1;
};

}  // namespace plumb
