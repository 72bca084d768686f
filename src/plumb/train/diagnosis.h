// Why a run diverged: what was measured and what to try, in sentences.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/run/watch.h"
#include "plumb/trouble/trouble_judge.h"

namespace plumb {

/// A diverged run: its parameters are those before the step that was not taken.
struct DivergedRun {
  const WatchedRun& run;  // with batches of the first training examples
  const StepNumbers& numbers;
  const StepJudgment& judgment;
  const std::vector<Tensor>& gradients;  // of that step
  const TroubleJudge& judge;
  const std::vector<WatchRecord>& watched;  // measurements of the run's watches

  /// Whether all parameters and the loss on run.batches are finite.
  bool finite = false;

  /// The last result of this type, such as CurvatureMeasurement, that meets a condition, and its step; empty if none.
  template <typename T, typename Condition>
  [[nodiscard]] std::pair<std::optional<T>, int64_t> last(const Condition& condition) const {
    for (auto record = watched.rbegin(); record != watched.rend(); ++record) {
      const std::optional<T> found = record->find<T>();
      if (found && condition(*found)) return {found, record->step};
    }
    return {};
  }
};

/// Whether the parameters and the loss on the run's batches, without dropout, are finite.
bool finite_on(const WatchedRun& run);

/// Asks all alarms that explain a divergence (train/alarm.h) and returns sentences: what rose first, then findings with
/// advice, then other findings, and finally what to try. An alarm that throws Error is left out.
std::vector<std::string> diagnose(const DivergedRun& diverged);

}  // namespace plumb
