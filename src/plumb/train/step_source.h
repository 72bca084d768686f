// The data of a run's steps, prepared in the background while the step before is computed.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plumb/data/batch_plan.h"
#include "plumb/task/dataset.h"
#include "plumb/train/config.h"
#include "plumb/train/step_share.h"

namespace plumb {

/// What the plan of a run's batches depends on; `mixture`: see mixture_of (train/corpora.h); `stream`: that of the
/// dataset.
PlanSettings plan_settings(const TrainConfig& config, std::optional<CorpusMixture> mixture = {},
                           const std::optional<StreamCut>& stream = {});

/// Which batches form a step, and this process's share of them. A share is a function of the settings, the epoch, the
/// number of the batch and the division: what a thread has prepared is what would be computed on demand, and is used
/// only for the step that it was prepared for.
class StepSource {
 public:
  using Batches = BatchPlan::Batches;

  /// `accumulate`: batches per step. The dataset must outlive the source. `go_to` follows.
  StepSource(const Dataset& dataset, const PlanSettings& settings, int64_t accumulate);

  /// Whether a state is carried from each step to the next of its epoch (Dataset::stream).
  [[nodiscard]] bool streams() const { return settings_.stream.has_value(); }

  /// Makes this the epoch of all that follows. Throws Error if an example does not fit into a batch.
  void go_to(int64_t epoch);

  [[nodiscard]] const ExampleCosts& costs() const { return costs_; }
  [[nodiscard]] const PlanSettings& settings() const { return settings_; }
  [[nodiscard]] const BatchPlan& plan() const { return *plan_; }

  /// The batches of the step that begins with batch `first` of the epoch, or those that are left; their number.
  [[nodiscard]] Batches batches(int64_t first) const { return plan_->batches(first, accumulate_); }
  [[nodiscard]] int64_t count(int64_t first) const;

  /// What the learning rate of the step that begins with batch `first` is multiplied by: for a segment of a varied
  /// stream its length, divided by that around which lengths vary; else 1. (Merity et al. 2018, section 5: else steps
  /// on short segments would count more per token.)
  [[nodiscard]] double rate_factor(int64_t first) const;

  /// The share of the step that begins with batch `first`, which is waited for if it is still being prepared. A thread
  /// begins to prepare the next step, of the next epoch if this one ends.
  [[nodiscard]] StepShare take(int64_t first, const Division& division);

  /// The share of any batches, computed now, as they are drawn in this epoch.
  [[nodiscard]] StepShare share_of(std::span<const std::vector<int64_t>> batches, const Division& division) const {
    return share_in(plan_->epoch(), batches, division);
  }

  /// How long `take` and `go_to` have taken so far, in seconds: the time that steps waited for their data.
  [[nodiscard]] double waited() const { return waited_; }

 private:
  struct Place {
    int64_t epoch = 0, batch = 0;
    Division division;
    bool operator==(const Place&) const = default;
  };
  struct Prepared {
    Place place;
    std::shared_ptr<const BatchPlan> plan;  // of the epoch
    StepShare share;
  };

  [[nodiscard]] std::shared_ptr<const BatchPlan> plan_of(int64_t epoch) const;
  [[nodiscard]] StepShare share_in(int64_t epoch, std::span<const std::vector<int64_t>> batches,
                                   const Division& division) const {
    return step_share(dataset_, costs_, batches, division, {settings_.seed, epoch});
  }
  /// Waits for what is being prepared, if anything.
  void receive();
  void prepare(const Place& place);

  const Dataset& dataset_;
  ExampleCosts costs_;
  PlanSettings settings_;
  int64_t accumulate_;
  std::shared_ptr<const BatchPlan> plan_;
  std::optional<Prepared> ready_;
  double waited_ = 0;
  std::future<Prepared> coming_;  // last: its destructor waits for the thread, which uses the others
};

}  // namespace plumb
