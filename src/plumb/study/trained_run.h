// The training runs of a study.
#pragma once

#include <functional>
#include <string>

#include "plumb/analysis/sweep.h"
#include "plumb/study/plan.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// The configuration and result of a training run.
struct TrainedRun {
  RunConfig config;
  TrainResult result;

  [[nodiscard]] bool diverged() const { return result.outcome == RunOutcome::diverged; }
  /// The last validation loss in nats per token; infinite if the run diverged, NaN if it was never validated.
  [[nodiscard]] double loss() const;
  /// The same, infinite if the run has failed (TrainResult::failed): for laws, which a failed run does not follow.
  [[nodiscard]] double fitted_loss() const;
  /// The validation loss by step; a diverged run ends in a null, which figures mark.
  [[nodiscard]] Series validation_curve(const std::string& name, const std::string& group) const;
};

/// Throws Error, naming what they are, if the units of warm-ups differ, since the longest is compared with none, or if
/// there is no warm-up to which a decay that begins after it could be tied.
void check_warm_ups(const std::string& what, const std::vector<Duration>& warm_ups, TrainConfig train);

/// By the rules for sweeps: a best rate at the end of an arm's, and what a rate between those tried may gain.
Quantity::Doubt doubt_of_sweeps(const std::function<Sweep(const std::string& arm)>& sweep_of);

/// Throws Error, naming the key, if two learning rates are the same in the names of runs.
void check_rates(const std::string& key, const std::vector<double>& rates);

/// The [train] of a run with a warm-up, among runs with these. Unless it says when the decay starts, an inverse square
/// root begins at the end of the longest warm-up in all of them, so that only their first steps differ.
TrainConfig with_warm_up(TrainConfig train, const Duration& warm_up, const std::vector<Duration>& all);

/// For a table: a number of steps, or text with a unit.
Json as_cell(const Duration& duration);

/// A training run that a part of a study needs.
struct RunRequest {
  std::string name;   // of the measurement, and of the run's directory
  std::string label;  // shown with progress
  RunConfig config;

  /// The same with the seed that follows it by `seed`, which also ends its name.
  [[nodiscard]] RunRequest with_seed(int64_t seed) const;
};

/// A question about a trained model. It is a separate measurement, so a new question does not retrain the run.
struct RunQuestion {
  std::string name;
  Json settings;  // what the answer depends on, besides the run
  std::function<Json(Model&)> ask;
};

/// The configuration of a run with the study's data, seed and [task], without slow metrics such as BLEU. `train`: an
/// arm's, or the study's.
RunConfig run_config(const StudyContext& context, const ModelConfig& model, const TrainConfig& train);

/// The directory of a run by the name and settings of its measurement; runs with different settings have different
/// directories.
std::filesystem::path run_directory(const StudyContext& context, const std::string& name, const Json& settings);

/// Trains a run in this directory, or resumes it. Returns its result.
Json trained(const StudyContext& context, const std::string& label, const RunConfig& config,
             const std::filesystem::path& out);

/// Trains a run in a separate directory, or resumes it.
MeasurementRequest run_measurement(StudyContext& context, const RunRequest& request);

/// Trains the run if needed and asks; the answer is null if the run diverged.
MeasurementRequest question_measurement(StudyContext& context, const RunRequest& request, const RunQuestion& question);

/// Plans a training run.
Planned<TrainedRun> planned_run(PartPlan& plan, StudyContext& context, const RunRequest& request);

/// Plans this run with its seed and the `seeds` − 1 that follow.
std::vector<Planned<TrainedRun>> planned_runs(PartPlan& plan, StudyContext& context, const RunRequest& request,
                                              int64_t seeds);

/// A measurement whose result is a list, [seed], of the mean negative log-likelihood of the validation split, with the
/// weights that runs of this model start from, for the study's seed and those that follow; null without that split.
/// `name` identifies the model within the study.
MeasurementRequest initial_loss_request(StudyContext& context, const std::string& name, const ModelConfig& config,
                                        int64_t seeds);

/// TrainedRun::loss of each run as comparisons count it: at most label_frequencies.
std::vector<double> counted_losses(const StudyContext& context, const std::vector<Planned<TrainedRun>>& runs);

/// TrainedRun::fitted_loss of each run.
std::vector<double> fitted_losses(const std::vector<Planned<TrainedRun>>& runs);

}  // namespace plumb
