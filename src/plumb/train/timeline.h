// Tokens and epochs seen by the end of each step of a run: converts durations in other units to steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/duration.h"
#include "plumb/data/batch_plan.h"
#include "plumb/run/config.h"

namespace plumb {

/// The steps of a run according to its batch plan, which depends only on the data and the settings of batches and
/// corpora: it is the same for a resumed run, for any number of processes, and whether or not steps are skipped. Plans
/// as many epochs as a question needs; durations in steps need none.
///
/// By its end, a step has seen the target tokens of all batches so far and, as the j-th of the S steps of epoch e (from
/// 0), e + j/S epochs.
class Timeline {
 public:
  /// The target tokens of each step of an epoch.
  using EpochTokens = std::function<std::vector<int64_t>(int64_t epoch)>;
  /// `steps` and `epochs` (0: unlimited): the most that the run lasts, which shares of it refer to.
  explicit Timeline(EpochTokens tokens_of, Duration steps = {}, int64_t epochs = 0)
      : tokens_of_(std::move(tokens_of)), most_steps_(steps), most_epochs_(epochs) {}

  /// The number of steps of the run. Throws Error if it is itself given as a share.
  int64_t run_steps();

  /// The first step by whose end the duration has been seen; 0 for a duration of 0. Throws Error if an epoch has no
  /// tokens, if more than 100 million steps would have to be planned, and on a share of a run without length.
  int64_t first_step(const Duration& duration);

  /// Whether this step, from 1, is the first to reach a multiple of `period`; with a period in steps, whether the step
  /// is a multiple. False if the period is not above 0.
  bool due(const Duration& period, int64_t step);

  /// The steps up to `last` at which `period` is due, in order.
  std::vector<int64_t> due_steps(const Duration& period, int64_t last);

  /// The first step at which `period` is due in a run of at most `steps` steps and `epochs` epochs (0: unlimited);
  /// empty if there is none.
  std::optional<int64_t> first_due(const Duration& period, int64_t steps, int64_t epochs);

 private:
  /// The amount seen by the end of a step: steps, tokens, or millionths of an epoch or of the run, rounded down.
  int64_t seen(Duration::Unit unit, int64_t step);
  void plan_epoch();
  [[nodiscard]] int64_t planned_epochs() const { return std::ssize(epoch_ends_) - 1; }
  [[nodiscard]] int64_t planned_steps() const { return epoch_ends_.back(); }

  EpochTokens tokens_of_;
  Duration most_steps_;
  int64_t most_epochs_ = 0;
  std::vector<int64_t> tokens_ = {0};      // seen by the end of each step, from step 0
  std::vector<int64_t> epoch_ends_ = {0};  // number of steps in the first 0, 1, 2, … epochs
};

/// The target tokens of each step of an epoch with this plan, for steps of `accumulate` batches (fewer in the last).
/// Models of kind "encoder" have no target; for these, source tokens.
std::vector<int64_t> tokens_of_steps(const ExampleCosts& costs, const BatchPlan& plan, int64_t accumulate,
                                     const std::string& kind);

/// The timeline of a run that trains a model of this kind on examples with these costs and plan settings. The data that
/// the costs refer to must outlive it. Throws Error on an invalid configuration.
Timeline make_timeline(const ExampleCosts& costs, const TrainConfig& config, const PlanSettings& settings,
                       const std::string& kind);

/// The configuration with these durations converted to steps: warm_up, decay_start, steps, those among options
/// ([train.step_decay] and others), and when groups are frozen. With `epochs`, `steps` becomes the end of the last one,
/// if that comes first. Intervals (…_every) are left as they are.
TrainConfig resolved(TrainConfig config, Timeline& timeline);

/// A line for the user with the steps of each duration that is given in another unit, including watch.every; empty
/// if all are in steps.
std::string durations_summary(const TrainConfig& config, const Duration& watch_every, Timeline& timeline);

}  // namespace plumb
