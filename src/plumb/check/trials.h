// Carrying out trials of a planned run of this program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plumb/check/subject.h"
#include "plumb/check/trial.h"
#include "plumb/check/verdict.h"

namespace plumb::check {

/// Carries out trials of one subject with the run's own optimizer, parameter groups, clipping, decay, dropout and batch
/// size. The schedule's decay is left out, as trials are short. Their losses are those of the probe, a fixed set of
/// training examples: the losses of the steps' own batches differ by more than trials have to be told apart by.
class Trials {
 public:
  /// `stop` is asked after each step; true ends the trial, whose outcome is then unknown unless it is already decided.
  /// The subject must outlive it.
  Trials(const Subject& subject, std::function<bool()> stop);
  ~Trials();

  /// At most this many steps. Throws Error if memory runs out.
  [[nodiscard]] Trial run(const TrialPlan& plan, int64_t steps);

  /// The losses that trials are judged by; `first` once one has begun.
  [[nodiscard]] const Baselines& baselines() const { return baselines_; }
  /// The model in its state after the last trial.
  [[nodiscard]] Model& model() { return *model_; }

 private:
  const Subject& subject_;
  std::function<bool()> stop_;
  std::unique_ptr<Model> model_;
  std::vector<Batch> probe_;
  Baselines baselines_;
  bool tried_ = false;  // the longest batch
};

}  // namespace plumb::check
