// The training runs of a study.
#pragma once

#include <functional>
#include <string>

#include "plumb/study/part.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// A run that was trained, now or by an earlier call.
struct TrainedRun {
  RunConfig config;
  TrainResult result;
  Json answer;  // see RunRequest::ask; null without a question, and for a run that diverged

  [[nodiscard]] bool diverged() const { return result.outcome == "diverged"; }
  /// The last validation loss, nats per token; infinite for a run that diverged.
  [[nodiscard]] double loss() const;
  /// "loss 2.31", or "diverged at step 120".
  [[nodiscard]] std::string summary() const;
  /// The validation loss over steps; the line of a run that diverged ends in a gap, which figures mark.
  [[nodiscard]] Series validation_curve(const std::string& name, const std::string& group) const;
};

/// What is to be trained.
struct RunRequest {
  std::string name;   // of the measurement, and of the run's directory
  std::string label;  // for people
  RunConfig config;
  Json more_settings = Json::object();  // what the answer depends on beside data and configuration
  /// What the trained model is asked besides; kept beside the result under `question`.
  std::string question{};
  std::function<Json(Model&)> ask{};
};

/// The configuration of a run on the study's data with its seed and its [train], without BLEU.
RunConfig run_config(const StudyContext& context, const ModelConfig& model);

/// Trains a run in a directory of its own, or continues it, or takes what an earlier call measured under the same name
/// with the same settings.
TrainedRun trained_run(StudyContext& context, const RunRequest& request);

}  // namespace plumb
