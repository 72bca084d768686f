// The data of a run's steps, prepared in the background during the previous step.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plumb/data/batch_plan.h"
#include "plumb/run/config.h"
#include "plumb/task/dataset.h"
#include "plumb/train/step_share.h"

namespace plumb {

/// The settings that determine a run's batch plan. `mixture`: from mixture_of (train/corpora.h); `stream`: from
/// Dataset::stream.
PlanSettings plan_settings(const TrainConfig& config, std::optional<CorpusMixture> mixture = {},
                           const std::optional<StreamCut>& stream = {});

/// The batches of each step, and this process's share of them. A share depends only on the settings, the epoch, the
/// number of the batch and the division, so a share prepared in the background equals one computed on demand. It is
/// used only for the step it was prepared for.
class StepSource {
 public:
  using Batches = BatchPlan::Batches;

  /// `accumulate`: batches per step. The dataset must outlive the source. Call `go_to` before anything else.
  StepSource(const Dataset& dataset, const PlanSettings& settings, int64_t accumulate);

  /// Whether a state is carried from step to step within an epoch (Dataset::stream).
  [[nodiscard]] bool streams() const { return settings_.stream.has_value(); }

  /// Switches to this epoch. Throws Error if an example does not fit into a batch.
  void go_to(int64_t epoch);

  [[nodiscard]] const ExampleCosts& costs() const { return costs_; }
  [[nodiscard]] const PlanSettings& settings() const { return settings_; }
  [[nodiscard]] const BatchPlan& plan() const { return *plan_; }

  /// The batches of the step that begins with batch `first` of the epoch, fewer at its end; and their number.
  [[nodiscard]] Batches batches(int64_t first) const { return plan_->batches(first, accumulate_); }
  [[nodiscard]] int64_t count(int64_t first) const;

  /// The learning-rate factor of the step that begins with batch `first`: for a stream with varied segment lengths, the
  /// segment's length / the base length, as steps on short segments would otherwise count more per token (Merity et al.
  /// 2018, section 5); 1 otherwise.
  [[nodiscard]] double rate_factor(int64_t first) const;

  /// The share of the step that begins with batch `first`; waits if it is still being prepared. Then a thread starts to
  /// prepare the next step, which may be in the next epoch.
  [[nodiscard]] StepShare take(int64_t first, const Division& division);

  /// The share of any batches, as drawn in this epoch, computed immediately.
  [[nodiscard]] StepShare share_of(std::span<const std::vector<int64_t>> batches, const Division& division) const {
    return share_in(plan_->epoch(), batches, division);
  }

  /// Total time spent in `take` and `go_to`, in seconds: how long steps waited for their data.
  [[nodiscard]] double wait_seconds() const { return waited_; }

 private:
  struct Place {
    int64_t epoch = 0, batch = 0;
    Division division;
    bool operator==(const Place&) const = default;
  };
  struct PreparedShare {
    Place place;
    std::shared_ptr<const BatchPlan> plan;  // of the epoch
    StepShare share;
  };

  [[nodiscard]] std::shared_ptr<const BatchPlan> plan_of(int64_t epoch) const;
  [[nodiscard]] StepShare share_in(int64_t epoch, std::span<const std::vector<int64_t>> batches,
                                   const Division& division) const {
    return step_share(dataset_, costs_, batches, division, {settings_.seed, epoch});
  }
  /// Waits for a share that is being prepared, if any.
  void receive();
  void prepare(const Place& place);

  const Dataset& dataset_;
  ExampleCosts costs_;
  PlanSettings settings_;
  int64_t accumulate_;
  std::shared_ptr<const BatchPlan> plan_;
  std::optional<PreparedShare> ready_;
  double waited_ = 0;
  std::future<PreparedShare> coming_;  // last: its destructor waits for the thread, which uses the other members
};

}  // namespace plumb
