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
  /// The last validation loss in nats per token; infinite if the run diverged.
  [[nodiscard]] double loss() const;
  /// "loss 2.31", or "diverged at step 120".
  [[nodiscard]] std::string summary() const;
  /// The validation loss by step; the line of a diverged run ends in a gap, which figures mark.
  [[nodiscard]] Series validation_curve(const std::string& name, const std::string& group) const;
};

/// A training run that a part of a study needs.
struct RunRequest {
  std::string name;   // of the measurement, and of the run's directory
  std::string label;  // for people
  RunConfig config;
  Json more_settings = Json::object();  // what the answer depends on, besides data and configuration
  /// An additional question to the trained model; the answer is kept along with the result.
  std::string question{};
  std::function<Json(Model&)> ask{};
};

/// The configuration of a run on the study's data with its seed, its [train] and its [task], without slow metrics such
/// as BLEU.
RunConfig run_config(const StudyContext& context, const ModelConfig& model);

/// Trains a run in a separate directory, resumes it, or returns what an earlier call measured under the same name with
/// the same settings.
TrainedRun trained_run(StudyContext& context, const RunRequest& request);

}  // namespace plumb
