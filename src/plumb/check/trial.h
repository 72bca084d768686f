// A trial: the first steps of a planned run at some learning rate, to see whether it trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/check/subject.h"
#include "plumb/check/verdict.h"

namespace plumb::check {

struct TrialPlan {
  double learning_rate = 0;
  int64_t warm_up = 0;  // steps of linear warm-up; the rate is constant afterward
  int64_t seed = 1;     // of random weights, the order of the data, and dropout
};

/// What a trial showed.
struct Trial {
  double learning_rate = 0;
  int64_t warm_up = 0;
  int64_t seed = 0;
  Outcome outcome = Outcome::unknown;
  std::optional<double> gradient_at_input;  // at its end, if it is stuck; check/gradient.h
  std::string reason;                       // a sentence with the numbers behind the outcome
  std::vector<int64_t> steps;               // at which the loss was measured, from 0
  std::vector<double> losses;               // there: the mean negative log-likelihood per label of the probe
  int64_t gradients = 0;                    // steps taken
  double seconds = 0;
};
void describe(Fields& field, Trial& trial);

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

  /// The losses that trials are judged by.
  [[nodiscard]] const Yardstick& yardstick() const { return yardstick_; }
  /// The model in its state after the last trial.
  [[nodiscard]] Model& model() { return *model_; }

 private:
  const Subject& subject_;
  std::function<bool()> stop_;
  std::unique_ptr<Model> model_;
  std::vector<Batch> probe_;
  Yardstick yardstick_;
  bool tried_ = false;  // the longest batch
};

}  // namespace plumb::check
