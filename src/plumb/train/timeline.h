// What a run has seen by the end of each step, and thus the steps at which durations in tokens and epochs end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/duration.h"
#include "plumb/data/batch_plan.h"
#include "plumb/train/config.h"

namespace plumb {

/// The steps of a run by the plan of its batches, which depends on the data, the seed, train.batch_tokens and
/// train.accumulate alone: the same for a resumed run, in any number of processes, and whatever becomes of the steps.
/// It plans as many epochs as a question needs; durations in steps need none.
///
/// The end of step k has seen the target tokens of all batches up to there, and e + j/S epochs, if it is the j-th of
/// the S steps of epoch e (from 0).
class Timeline {
 public:
  /// The target tokens of each step of an epoch.
  using EpochTokens = std::function<std::vector<int64_t>(int64_t epoch)>;
  explicit Timeline(EpochTokens tokens_of) : tokens_of_(std::move(tokens_of)) {}

  /// The first step at whose end as much has been seen; 0 for a duration of 0. Throws Error if the data have no tokens,
  /// and beyond 100 million steps.
  int64_t first_step(const Duration& duration);

  /// Whether a multiple of `period` is first reached at this step, from 1; never, if it is not above 0. With a period
  /// in steps: whether the step is a multiple.
  bool due(const Duration& period, int64_t step);

  /// The steps at which `period` is due up to `last`, in order.
  std::vector<int64_t> due_steps(const Duration& period, int64_t last);

  /// The first step at which `period` is due in a run of `steps` steps and `epochs` epochs (0: unlimited); nothing if
  /// it never is.
  std::optional<int64_t> first_due(const Duration& period, int64_t steps, int64_t epochs);

 private:
  /// What the end of a step has seen: steps, tokens, or millionths of an epoch, rounded down.
  int64_t seen(Duration::Unit unit, int64_t step);
  void plan_epoch();
  [[nodiscard]] int64_t planned_epochs() const { return std::ssize(epoch_ends_) - 1; }
  [[nodiscard]] int64_t planned_steps() const { return epoch_ends_.back(); }

  EpochTokens tokens_of_;
  std::vector<int64_t> tokens_ = {0};      // seen by the end of each step, from step 0
  std::vector<int64_t> epoch_ends_ = {0};  // the last step of the first 0, 1, 2, … epochs
};

/// The target tokens of each step of an epoch with these batches: of train.accumulate batches each, the last of those
/// that are left. A model of the kind "encoder" has no target, and counts source tokens.
std::vector<int64_t> tokens_of_steps(const ExampleCosts& costs, const BatchPlan& plan, int64_t accumulate,
                                     const std::string& kind);

/// The timeline of a run that trains a model of this kind on examples with these costs, planned with these settings;
/// what the costs refer to must outlive it. Throws Error on an invalid configuration.
Timeline make_timeline(const ExampleCosts& costs, const TrainConfig& config, const PlanSettings& settings,
                       const std::string& kind);

/// The configuration with warm_up, decay_start, steps, durations among options ([train.step_decay] and others), and
/// when groups are frozen, in steps. What happens at intervals
/// remains as it is.
TrainConfig resolved(TrainConfig config, Timeline& timeline);

/// For people: the steps of each duration that is not given in steps, those of [watch] included, in one line; empty if
/// all are given in steps.
std::string durations_summary(const TrainConfig& config, const Duration& watch_every, Timeline& timeline);

}  // namespace plumb
